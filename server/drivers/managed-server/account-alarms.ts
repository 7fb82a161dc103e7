/** One alarm for what may be wrong with the servers of several accounts. */
import type { ManagedServerDeps } from './managed-server.ts';

type Sink = ManagedServerDeps['alarms'];

export class AccountAlarms {
  readonly #sink: Sink;
  /** By code and account. */
  readonly #raised = new Map<string, Map<number, { readonly detail: string; readonly fix: string }>>();

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  /** The alarms of the server of that account. */
  of(accountId: number): Sink {
    return {
      raise: (code, detail, fix) => {
        const raised = this.#raised.get(code) ?? new Map();
        this.#raised.set(code, raised.set(accountId, { detail: `account ${accountId}: ${detail}`, fix }));
        this.#report(code);
      },
      clear: (code) => {
        if (this.#raised.get(code)?.delete(accountId)) this.#report(code);
      },
    };
  }

  #report(code: string): void {
    const raised = [...(this.#raised.get(code)?.values() ?? [])];
    const said = (of: 'detail' | 'fix') => [...new Set(raised.map((one) => one[of]))].join('; ');
    if (raised.length === 0) this.#sink.clear(code);
    else this.#sink.raise(code, said('detail'), said('fix'));
  }
}
