// Where are the values of a chart drawn?

/** A value at a time, in Unix milliseconds; the mean of many, if there are so many. */
export interface Point {
  time: number;
  value: number;
  many?: { count: number; low: number; high: number };
}

/** The bounds of points; a line that is flat has room above and below. */
export function boundsOf(points: readonly Point[]): {
  from: number;
  to: number;
  low: number;
  high: number;
} {
  let [from, to, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { time, value, many } of points) {
    [from, to] = [Math.min(from, time), Math.max(to, time)];
    [low, high] = [Math.min(low, many?.low ?? value), Math.max(high, many?.high ?? value)];
  }
  const room = low === high ? Math.max(Math.abs(low) * 0.1, 1) : 0;
  return { from, to, low: low - room, high: high + room };
}

/** The path of a line through points in a box of this size. */
export function pathOf(points: readonly Point[], width: number, height: number): string {
  const at = placeIn(points, width, height);
  return line(points.map(({ time, value }) => at(time, value)));
}

/** The path around the lowest and the highest values of points, if they are of many. */
export function bandOf(points: readonly Point[], width: number, height: number): string {
  const at = placeIn(points, width, height);
  const highs = points.map(({ time, value, many }) => at(time, many?.high ?? value));
  const lows = points.map(({ time, value, many }) => at(time, many?.low ?? value));
  return `${line([...highs, ...lows.toReversed()])}Z`;
}

function placeIn(points: readonly Point[], width: number, height: number) {
  const { from, to, low, high } = boundsOf(points);
  return (time: number, value: number) => {
    const x = to === from ? width / 2 : ((time - from) / (to - from)) * width;
    const y = height - ((value - low) / (high - low)) * height;
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  };
}

function line(places: readonly string[]): string {
  return `M${places.join("L")}`;
}

/** A number with as many digits as a person reads. */
export function shortNumber(value: number): string {
  return Number(value.toPrecision(5)).toString();
}
