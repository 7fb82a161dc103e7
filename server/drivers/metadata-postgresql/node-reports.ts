/** The report of a node to the others, as JSON in its row. */
import type { NodeReport } from '../../platform/membership.ts';

/** Each node reads the rows of all of them every second. */
const MAX_BYTES = 16_384;
const NOTHING: NodeReport = { alarms: [], load: null };

/** The report of this node, and what of it is stored. */
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

/** At most 16 KiB: first the words for accounts are left out, then the last alarms. */
export function reportText({ alarms, load }: NodeReport): string {
  const whole = JSON.stringify({ alarms, load });
  if (fits(whole)) return whole;
  const kept = alarms.map(({ code, detail, fix, since }) => ({ code, detail, fix, since }));
  for (;;) {
    const text = JSON.stringify({ alarms: kept, load });
    if (fits(text) || kept.length === 0) return text;
    kept.pop();
  }
}

/** A node of another version may tell other things: what cannot be read counts as nothing. */
export function readReport(text: string): NodeReport {
  try {
    const { alarms, load } = JSON.parse(text) as Partial<NodeReport>;
    return { alarms: Array.isArray(alarms) ? alarms : [], load: load ?? null };
  } catch {
    return NOTHING;
  }
}

const fits = (text: string) => Buffer.byteLength(text) <= MAX_BYTES;
