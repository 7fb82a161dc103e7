/** One alarm for problems with several accounts' servers. */
import type { Alarm, Alarms } from '../../../platform/alarms.ts';
import type { ManagedServerDeps } from '../managed-server.ts';

type Sink = Pick<Alarms, 'raise' | 'clear'>;
type Words = Pick<Alarm, 'detail' | 'fix'>;

export class AccountAlarms {
  readonly #sink: Sink;
  /** Alarms by code and account. */
  readonly #raised = new Map<string, Map<number, Words>>();

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  /** The alarms of that account's server. */
  of(accountId: number): ManagedServerDeps['alarms'] {
    return {
      raise: (code, detail, fix) => {
        const raised = this.#raised.get(code) ?? new Map<number, Words>();
        this.#raised.set(code, raised.set(accountId, { detail, fix }));
        this.#report(code);
      },
      clear: (code) => {
        if (this.#raised.get(code)?.delete(accountId)) this.#report(code);
      },
    };
  }

  #report(code: string): void {
    const raised = this.#raised.get(code) ?? new Map<number, Words>();
    if (raised.size === 0) {
      this.#sink.clear(code);
      return;
    }
    const all = [...raised].map(([accountId, { detail }]) => `account ${accountId}: ${detail}`).join('; ');
    const fixes = [...new Set([...raised.values()].map(({ fix }) => fix))].join('; ');
    this.#sink.raise(code, { all, of: new Map(raised) }, fixes);
  }
}
