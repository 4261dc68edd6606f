// One colour per reason, in their order, as in whytube/report/draw.py.

const PALETTE = [
  [240, 165, 0],
  [86, 180, 233],
  [0, 178, 130],
  [222, 128, 178],
  [240, 228, 66],
  [222, 94, 0],
];

export const OWN = 5; // the rank whose colour a tube drawn by hand has: no answer has so many reasons

export const reasonColour = (rank) => css(PALETTE[rank % PALETTE.length]);

/** Black or white, whichever is easier to read on the colour of a reason (WCAG contrast). */
export function reasonInk(rank) {
  const [red, green, blue] = PALETTE[rank % PALETTE.length].map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

const css = (parts) => `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
