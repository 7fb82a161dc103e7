/** Costs of a period by resource and day: the most expensive resources, and the sum of the rest. */
import type { MeterName } from '../metering/meters.ts';
import { resourceTypeOf } from '../metering/meters.ts';
import { creditsOf, DAY_MS, type Figure, type Period } from './report-period.ts';

/** A cost on one day, of a meter of a resource. */
export interface ResourceDay {
  /** Days since 1970. */
  readonly day: number;
  readonly meter: MeterName;
  readonly resource_id: string;
  readonly name: string;
  readonly cost_micro: number | bigint;
}

export interface ResourceCost {
  readonly resource_type: string;
  readonly resource_id: string;
  readonly name: string;
  readonly cost: Figure;
  readonly days: Figure[];
}

interface Sum {
  readonly type: string;
  readonly id: string;
  name: string;
  cost: bigint;
  readonly days: Map<number, bigint>;
}

/** Sums up rows that come oldest day first. */
export class ResourceSums {
  readonly #first: number;
  readonly #count: number;
  readonly #sums = new Map<string, Sum>();
  total = 0n;

  /** Every day of the period up to now, even without usage. */
  constructor({ from, to }: Period, now: number) {
    this.#first = Math.floor(from / DAY_MS);
    this.#count = Math.max(0, Math.ceil(Math.min(to, now + 1) / DAY_MS) - this.#first);
  }

  get dates(): number[] {
    return Array.from({ length: this.#count }, (_, index) => (this.#first + index) * DAY_MS);
  }

  add(rows: readonly ResourceDay[]): void {
    for (const row of rows) {
      const cost = BigInt(row.cost_micro);
      const type = resourceTypeOf(row.meter, row.resource_id);
      // A bucket is identified by its name, even after it was deleted and created again.
      const id = type === 'bucket' ? row.name : row.resource_id;
      const key = `${type} ${id}`;
      const sum = this.#sums.get(key) ?? { type, id, name: row.name, cost: 0n, days: new Map() };
      sum.name = row.name;
      sum.cost += cost;
      sum.days.set(row.day, (sum.days.get(row.day) ?? 0n) + cost);
      this.#sums.set(key, sum);
      this.total += cost;
    }
  }

  /** The `top` most expensive, highest cost first; resources without cost are omitted. */
  first(top: number): ResourceCost[] {
    // Figures per day are computed only for these: a month of thousands of resources takes a second of
    // processor time.
    return this.#dearest()
      .slice(0, top)
      .map(({ type, id, name, cost, days }) => ({
        resource_type: type,
        resource_id: id,
        name,
        cost: creditsOf(cost),
        days: this.#figures([days]),
      }));
  }

  /** Sum of all resources except those of first(top). */
  others(top: number): { readonly count: number; readonly cost: Figure; readonly days: Figure[] } {
    const rest = this.#dearest().slice(top);
    const cost = rest.reduce((sum, one) => sum + one.cost, 0n);
    return { count: rest.length, cost: creditsOf(cost), days: this.#figures(rest.map(({ days }) => days)) };
  }

  #dearest(): Sum[] {
    const order = (a: Sum, b: Sum) => Number(b.cost - a.cost) || (a.id < b.id ? -1 : 1);
    return [...this.#sums.values()].filter(({ cost }) => cost !== 0n).sort(order);
  }

  #figures(all: readonly ReadonlyMap<number, bigint>[]): Figure[] {
    return this.dates.map((at) => {
      const day = at / DAY_MS;
      return creditsOf(all.reduce((sum, days) => sum + (days.get(day) ?? 0n), 0n));
    });
  }
}
