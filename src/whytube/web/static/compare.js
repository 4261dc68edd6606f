// Two answers about one video, side by side: both videos show the same frame.

/** Lets two players go together: where a person moves one, the other follows. */
export class Together {
  constructor() {
    this.pair = null;
  }

  join(first, second) {
    this.pair = [first, second];
    second.seek(first.goal, { following: true });
  }

  part() {
    this.pair = null;
  }

  #other(player) {
    return this.pair?.find((each) => each !== player) ?? null;
  }

  /** One of the two shows another frame: the other goes there, unless this one only followed it. */
  moved(player, frame) {
    const other = this.#other(player);
    if (!other || player.following) return;
    if (other.wanted !== null && !other.following) return; // a person has just moved the other one
    const apart = Math.abs(other.goal - frame);
    if (apart > (player.playing ? 1 : 0)) other.seek(frame, { following: true }); // while both play they may differ by one
  }

  /** One of the two was started or stopped; while they play the first leads. */
  changed(player) {
    const other = this.#other(player);
    if (!other || player.playing === other.playing) return;
    [this.pair[0].following, this.pair[1].following] = [false, true];
    if (player.playing) other.play();
    else other.pause();
  }
}
