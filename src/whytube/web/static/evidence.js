// What masking a tube did, as `Reason` and `Explanation` of the package judge it, and in words for people.

const MOVED = 0.05; // how far p(A) - p(B) must fall for the decision to be moved at all
const MUCH = 0.25; // and by more than a little

const fallOf = (e) => e.positive_before - e.negative_before - (e.positive_after - e.negative_after);
const turnedBy = (e) => e.positive_after < e.negative_after && e.positive_before >= e.negative_before;

function mostly(reason, holds) {
  return 2 * reason.evidence.filter(holds).length > reason.evidence.length;
}

/** How much p(A) - p(B) fell, the mean over fills; null where nothing was measured. */
export function fall(reason) {
  return reason.evidence.length ? mean(reason.evidence.map(fallOf)) : null;
}

/** What the decision does once the tube is masked: "turns", "moves", "moves a little", "stays" or "not checked". */
export function verdict(reason) {
  if (!reason.evidence.length) return "not checked";
  if (mostly(reason, turnedBy)) return "turns";
  if (mostly(reason, (e) => turnedBy(e) || fallOf(e) >= MUCH)) return "moves";
  return mostly(reason, (e) => turnedBy(e) || fallOf(e) >= MOVED) ? "moves a little" : "stays";
}

const moves = (reason) => !["not checked", "stays"].includes(verdict(reason));

/** Ranks of the reasons that the sentence names: those that move the decision, or all where none was checked. */
export function telling(explanation) {
  const unchecked = explanation.reasons.every((reason) => !reason.evidence.length);
  return explanation.reasons.flatMap((reason, rank) => (unchecked || moves(reason) ? [rank] : []));
}

/** The verdict as a sentence. */
export function verdictText(reason, positive, negative) {
  return {
    turns: `Hide it, and ${negative} overtakes ${positive}.`,
    moves: "Hide it, and the decision clearly moves.",
    "moves a little": "Hide it, and the decision moves a little.",
    stays: "Hide it, and the decision stays.",
    "not checked": "Not checked: it was not hidden from the network.",
  }[verdict(reason)];
}

/** What hiding did to A and B, the mean over fills: {positive: [before, after], negative: [before, after]}. */
export function meanChange(reason) {
  const over = (name) => mean(reason.evidence.map((e) => e[name]));
  return {
    positive: [over("positive_before"), over("positive_after")],
    negative: [over("negative_before"), over("negative_after")],
  };
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

const FILLS = {
  mean: "painted over",
  blur: "blurred",
  freeze: "frozen",
  zero: "blackened",
  still: "stilled",
  shift: "replaced by what is beside it",
  noise: "turned to noise",
};

/** A fill in words; what is not known keeps its name. */
export const fillName = (fill) => FILLS[fill] ?? fill;

/** A probability for people: "83 %", "<1 %". */
export function percent(p) {
  if (p > 0 && p < 0.01) return "<1\u00a0%";
  if (p < 1 && p > 0.99) return ">99\u00a0%";
  return `${Math.round(100 * p)}\u00a0%`;
}

export const seconds = (value) => `${value.toFixed(value < 100 ? 2 : 1)}\u00a0s`;

/** How to call a reason: its word, or what stands for one. */
export const wordOf = (reason) => reason.attribute || "a region without a word";
