/** A node's report to others, as JSON in its row. */
import type { NodeReport, ToldPorts } from '../../platform/membership.ts';

/** Each node reads all rows every second. */
const MAX_BYTES = 16_384;
const NOTHING: NodeReport = { alarms: [], load: null, ports: null, passed: [] };
/** Share of the ports. */
const MAX_PORTS_BYTES = 8192;

/** The report of this node, and its stored part. */
export class OwnReport {
  of: () => NodeReport = () => NOTHING;
  #stored = '';

  /** The text to store now; null: nothing has changed. */
  changed(): string | null {
    const text = reportText(this.of());
    return text === this.#stored ? null : text;
  }

  stored(text: string): void {
    this.#stored = text;
  }
}

/**
 * At most 16 KiB: ports beyond 8 KiB are left out, then the words for accounts, then the last alarms. Ports
 * of databases lie side by side, so that it takes more than a thousand published ports.
 */
export function reportText({ alarms, load, ports: all, passed }: NodeReport): string {
  const ports = all && { ...all, of: bounded(all.of) };
  const whole = JSON.stringify({ alarms, load, ports, passed });
  if (fits(whole)) return whole;
  const kept = alarms.map(({ code, detail, fix, since }) => ({ code, detail, fix, since }));
  for (;;) {
    const text = JSON.stringify({ alarms: kept, load, ports, passed });
    if (fits(text) || kept.length === 0) return text;
    kept.pop();
  }
}

/** Nodes of other versions may report other data: unreadable parts are ignored. */
export function readReport(text: string): NodeReport {
  try {
    const { alarms, load = null, ports = null, passed } = JSON.parse(text) as Partial<NodeReport>;
    return { alarms: listOf(alarms), load, ports, passed: listOf(passed) };
  } catch {
    return NOTHING;
  }
}

/** Ranges as far as they fit; those of databases come first. */
function bounded(of: ToldPorts['of']): ToldPorts['of'] {
  const kinds = Object.entries(of).sort(([a], [b]) => Number(a === 'tcp') - Number(b === 'tcp'));
  let left = MAX_PORTS_BYTES;
  return Object.fromEntries(
    kinds.map(([kind, ranges]) => {
      const kept = ranges.length <= left ? ranges : ranges.slice(0, ranges.lastIndexOf(',', left) + 1);
      left -= kept.length;
      return [kind, kept];
    }),
  );
}

function listOf<T>(value: readonly T[] | undefined): readonly T[] {
  return Array.isArray(value) ? value : [];
}

const fits = (text: string) => Buffer.byteLength(text) <= MAX_BYTES;
