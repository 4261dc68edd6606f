// Two answers about one video, side by side: both videos play the same frame.

/** Lets two players go together; `follow` is called for each with the other one. */
export class Together {
  constructor() {
    this.pair = null;
    this.leading = false;
  }

  join(first, second) {
    this.pair = [first, second];
    second.seek(first.frame);
  }

  part() {
    this.pair = null;
  }

  #other(player) {
    return this.pair?.find((each) => each !== player) ?? null;
  }

  /** One of the two shows another frame: the other goes there, if it is not about to. */
  moved(player, frame) {
    const other = this.#other(player);
    if (!other || this.leading) return;
    const apart = Math.abs(other.frame - frame);
    // While both play they drift by a frame at most before the second is set right by the first.
    if (apart === 0 || (player.playing && (player !== this.pair[0] || apart <= 1))) return;
    this.#lead(() => other.seek(frame));
  }

  /** One of the two was started or stopped. */
  changed(player) {
    const other = this.#other(player);
    if (!other || this.leading || player.playing === other.playing) return;
    this.#lead(() => (player.playing ? other.play() : other.pause()));
  }

  #lead(action) {
    this.leading = true;
    action();
    this.leading = false;
  }
}
