// A line of numbers over time. Whoever cannot see it hears its summary, and reads the table.
import { type Point, boundsOf, pathOf, shortNumber } from "./scale";
import { Time } from "./Time";

const width = 1_000;
const height = 240;

/** A chart of points in the order of time. */
export function Chart(props: { label: string; points: readonly Point[] }) {
  const { points } = props;
  const last = points.at(-1);
  if (last === undefined) return null;
  const { low, high, from, to } = boundsOf(points);
  const summary =
    `${props.label}: ${points.length} values between ${shortNumber(low)} and ` +
    `${shortNumber(high)}, the last one ${shortNumber(last.value)}`;
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
