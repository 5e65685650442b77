// Charts over time, drawn as SVG. Each is also there as a table.
import type { StatsPoint } from "./api";
import { count, fullTime, milliseconds, percent } from "./format";

export interface Bar {
  at: string; // a name of the interval, for people
  good: number;
  bad: number;
}

// Bars are two numbers for each interval, one on top of the other.
export function Bars(props: { label: string; good: string; bad: string; bars: Bar[] }) {
  const top = Math.max(1, ...props.bars.map((b) => b.good + b.bad));
  const height = (n: number) => (100 * n) / top;
  return (
    <figure class="chart">
      <div class="plot">
        <span class="axis">{count(top)}</span>
        <svg viewBox={`0 0 ${props.bars.length * 10} 100`} preserveAspectRatio="none" role="img" aria-label={props.label}>
          {props.bars.map((b, i) => (
            <g key={b.at}>
              <title>{`${b.at}: ${count(b.good)} ${props.good}, ${count(b.bad)} ${props.bad}`}</title>
              <rect class="hit" x={i * 10} y={0} width={10} height={100} />
              <rect class="bar-good" x={i * 10 + 1} y={100 - height(b.good)} width={8} height={height(b.good)} />
              <rect class="bar-bad" x={i * 10 + 1} y={100 - height(b.good + b.bad)} width={8} height={height(b.bad)} />
            </g>
          ))}
        </svg>
      </div>
      <Legend first={props.bars[0]?.at} last={props.bars.at(-1)?.at} keys={[["good", props.good], ["bad", props.bad]]} />
      <details>
        <summary>As a table</summary>
        <table aria-label={props.label}>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col" class="number">{props.good}</th>
              <th scope="col" class="number">{props.bad}</th>
            </tr>
          </thead>
          <tbody>
            {props.bars.map((b) => (
              <tr key={b.at}>
                <th scope="row">{b.at}</th>
                <td class="number">{count(b.good)}</td>
                <td class="number">{count(b.bad)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}

// Latencies are p50 and p95 of each interval that has attempts.
export function Latencies({ points }: { points: StatsPoint[] }) {
  const top = Math.max(1, ...points.map((p) => p.p95Ms ?? 0));
  const last = points.at(-1);
  const line = (of: (p: StatsPoint) => number | null) =>
    points.flatMap((p, i) => (of(p) === null ? [] : [`${i * 10 + 5},${100 - (95 * (of(p) ?? 0)) / top}`])).join(" ");
  return (
    <figure class="chart">
      <div class="plot">
        <span class="axis">{milliseconds(top)}</span>
        <svg viewBox={`0 0 ${points.length * 10} 100`} preserveAspectRatio="none" role="img" aria-label="Latency of attempts">
          <polyline class="line-p95" points={line((p) => p.p95Ms)} />
          <polyline class="line-p50" points={line((p) => p.p50Ms)} />
          {points.map((p, i) => (
            <g key={p.at}>
              <title>{`${fullTime(p.at)}: half within ${milliseconds(p.p50Ms)}, 95% within ${milliseconds(p.p95Ms)}`}</title>
              <rect class="hit" x={i * 10} y={0} width={10} height={100} />
              {p.p50Ms !== null && <line class="dot-p50" x1={i * 10 + 5} x2={i * 10 + 5} y1={100 - (95 * p.p50Ms) / top} y2={100 - (95 * p.p50Ms) / top} />}
              {p.p95Ms !== null && <line class="dot-p95" x1={i * 10 + 5} x2={i * 10 + 5} y1={100 - (95 * p.p95Ms) / top} y2={100 - (95 * p.p95Ms) / top} />}
            </g>
          ))}
        </svg>
      </div>
      <Legend first={points[0] && hour(points[0].at)} last={last && hour(last.at)} keys={[["p50", "Half of the attempts within"], ["p95", "95% within"]]} />
    </figure>
  );
}

function Legend(props: { first?: string; last?: string; keys: [tone: string, text: string][] }) {
  return (
    <figcaption>
      <div class="ends">
        <span>{props.first}</span>
        <span>{props.last}</span>
      </div>
      <div class="keys">
        {props.keys.map(([tone, text]) => (
          <span key={tone} class={`key ${tone}`}>
            {text}
          </span>
        ))}
      </div>
    </figcaption>
  );
}

const clock = new Intl.DateTimeFormat("en-GB", { weekday: "short", hour: "2-digit", minute: "2-digit" });
export const hour = (iso: string) => clock.format(new Date(iso));

// outcomes are the bars of an endpoint's statistics.
export const outcomes = (points: StatsPoint[]): Bar[] => points.map((p) => ({ at: hour(p.at), good: p.successCount, bad: p.failureCount }));

// successRate is that of all points together.
export function successRate(points: StatsPoint[]): string {
  const good = points.reduce((sum, p) => sum + p.successCount, 0);
  return percent(good, good + points.reduce((sum, p) => sum + p.failureCount, 0));
}

// Meter is a part of a whole.
export function Meter({ value, max, label }: { value: number; max: number; label: string }) {
  return (
    <meter class="meter" min={0} max={max} value={value} low={max / 10} aria-label={label}>
      {percent(value, max)}
    </meter>
  );
}
