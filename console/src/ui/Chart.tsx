// A line of numbers over time. Whoever cannot see it hears its summary, and reads the table.
import { type Point, bandOf, boundsOf, pathOf, shortNumber } from "./scale";
import { Time } from "./Time";

const width = 1_000;
const height = 240;

/** A chart of points in the order of time, and of the last value. */
export function Chart(props: { label: string; points: readonly Point[]; lastValue: number }) {
  const { points } = props;
  const count = points.reduce((sum, { many }) => sum + (many?.count ?? 1), 0);
  const { low, high, from, to } = boundsOf(points);
  const summary =
    `${props.label}: ${count} values between ${shortNumber(low)} and ` +
    `${shortNumber(high)}, the last one ${shortNumber(props.lastValue)}`;
  return (
    <figure className="chart">
      <span aria-hidden="true">{shortNumber(high)}</span>
      <svg
        viewBox={`0 -4 ${width} ${height + 8}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={summary}
      >
        {[0, height / 2, height].map((y) => (
          <line key={y} className="chart-grid" x1={0} x2={width} y1={y} y2={y} />
        ))}
        <path className="chart-band" d={bandOf(points, width, height)} />
        <path className="chart-line" d={pathOf(points, width, height)} />
      </svg>
      <span aria-hidden="true">{shortNumber(low)}</span>
      <figcaption>
        <Time at={`${from}`} />
        <Time at={`${to}`} />
      </figcaption>
    </figure>
  );
}
