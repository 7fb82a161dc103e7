/** A node's report to others, as JSON in its row. */
import type { NodeReport } from '../../platform/membership.ts';

/** Each node reads all rows every second. */
const MAX_BYTES = 16_384;
const NOTHING: NodeReport = { alarms: [], load: null, ports: null, portsSeen: null, passed: [] };

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

/** At most 16 KiB: the words for accounts are left out first, then the last alarms. */
export function reportText({ alarms, ...rest }: NodeReport): string {
  const whole = JSON.stringify({ alarms, ...rest });
  if (fits(whole)) return whole;
  const kept = alarms.map(({ code, detail, fix, since }) => ({ code, detail, fix, since }));
  for (;;) {
    const text = JSON.stringify({ alarms: kept, ...rest });
    if (fits(text) || kept.length === 0) return text;
    kept.pop();
  }
}

/** Nodes of other versions may report other data: unreadable parts are ignored. */
export function readReport(text: string): NodeReport {
  try {
    const read = JSON.parse(text) as Partial<NodeReport>;
    const { alarms, load = null, ports = null, portsSeen = null, passed } = read;
    return { alarms: listOf(alarms), load, ports, portsSeen, passed: listOf(passed) };
  } catch {
    return NOTHING;
  }
}

function listOf<T>(value: readonly T[] | undefined): readonly T[] {
  return Array.isArray(value) ? value : [];
}

const fits = (text: string) => Buffer.byteLength(text) <= MAX_BYTES;
