// Where are the values of a chart drawn?

/** A value at a time, in Unix milliseconds. */
export interface Point {
  time: number;
  value: number;
}

/** The bounds of points; a line that is flat has room above and below. */
export function boundsOf(points: readonly Point[]): {
  from: number;
  to: number;
  low: number;
  high: number;
} {
  let [from, to, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { time, value } of points) {
    [from, to] = [Math.min(from, time), Math.max(to, time)];
    [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  const room = low === high ? Math.max(Math.abs(low) * 0.1, 1) : 0;
  return { from, to, low: low - room, high: high + room };
}

/** The path of a line through points in a box of this size. */
export function pathOf(points: readonly Point[], width: number, height: number): string {
  const { from, to, low, high } = boundsOf(points);
  const x = (time: number) => (to === from ? width / 2 : ((time - from) / (to - from)) * width);
  const y = (value: number) => height - ((value - low) / (high - low)) * height;
  return points
    .map(({ time, value }, index) => {
      const letter = index === 0 ? "M" : "L";
      return `${letter}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
    })
    .join("");
}

/** A number with as many digits as a person reads. */
export function shortNumber(value: number): string {
  return Number(value.toPrecision(5)).toString();
}
