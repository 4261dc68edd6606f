// Plays a video frame by frame under a canvas. Frame i of a video is shown from time i / fps on.

/**
 * A <video> whose frames are known by number.
 *
 * draw(context, frame): paints on the canvas over the video, which is as large as the video on the screen.
 * moved(frame): called whenever another frame is shown. changed(): called when playing starts or stops.
 */
export class Player {
  constructor(video, canvas, { draw = () => {}, moved = () => {}, changed = () => {} } = {}) {
    Object.assign(this, { video, canvas, draw, moved, changed });
    this.frame = 0;
    this.frames = 1;
    this.fps = 1;
    this.following = false;
    this.wanted = null; // where to go once the video can be sought in
    this.context = canvas.getContext("2d");
    this.watching = video.requestVideoFrameCallback((_, shown) => this.#shown(shown));
    for (const event of ["play", "pause", "ended"]) video.addEventListener(event, () => this.changed());
    video.addEventListener("loadeddata", () => this.seek(this.wanted ?? 0, { following: this.following }));
    video.addEventListener("seeked", () => this.#arrived());
    new ResizeObserver(() => this.#resize()).observe(canvas);
  }

  /** Show a video of `frames` frames from a frame on. */
  load(url, { frames, fps, frame = 0 }) {
    Object.assign(this, { frames, fps, wanted: frame, url });
    this.video.src = url;
    this.video.load();
  }

  /** Show the same frames of another file, playing on if this one plays. */
  swap(url) {
    if (url === this.url) return;
    const playing = !this.video.paused;
    this.load(url, { frames: this.frames, fps: this.fps, frame: this.goal });
    if (playing) this.play();
  }

  /** The frame that is shown, or where a seek is on its way to: what a key that is pressed now is meant for. */
  get goal() {
    return this.wanted ?? this.frame;
  }

  get playing() {
    return !this.video.paused && !this.video.ended;
  }

  play() {
    return this.video.play().catch(() => {}); // a browser may refuse to play unasked; the button is still there
  }

  pause() {
    this.video.pause();
  }

  toggle() {
    return this.playing ? this.pause() : this.play();
  }

  /**
   * Go to a frame; what is drawn moves when the frame is there. following: because another player went there.
   *
   * The middle of its time is sought, so that rounding never shows its neighbour.
   */
  seek(frame, { following = false } = {}) {
    this.following = following;
    this.wanted = Math.round(Math.min(Math.max(0, frame), this.frames - 1));
    if (this.video.readyState >= HTMLMediaElement.HAVE_METADATA) this.video.currentTime = (this.wanted + 0.5) / this.fps;
  }

  /** Stop, and go some frames on or back. */
  step(count) {
    this.pause();
    this.seek(this.goal + count);
  }

  redraw() {
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.draw(this.context, this.frame);
  }

  #shown({ mediaTime }) {
    this.watching = this.video.requestVideoFrameCallback((_, shown) => this.#shown(shown));
    if (!this.video.seeking && this.wanted === null) this.#move(Math.round(mediaTime * this.fps));
  }

  /** A seek to the frame that is shown already brings no new frame to tell of. */
  #arrived() {
    if (this.video.seeking) return; // a later seek is under way
    this.wanted = null;
    this.#move(Math.floor(this.video.currentTime * this.fps + 1e-6));
  }

  #move(frame) {
    const before = this.frame;
    this.frame = Math.min(Math.max(0, frame), this.frames - 1);
    this.canvas.dataset.frame = this.frame;
    this.redraw();
    if (this.frame !== before) this.moved(this.frame); // a seek tells of its frame twice
  }

  #resize() {
    const { width, height } = this.canvas.getBoundingClientRect();
    const density = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * density);
    this.canvas.height = Math.round(height * density);
    this.redraw();
  }
}
