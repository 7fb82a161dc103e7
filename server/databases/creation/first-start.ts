/**
 * An account's first database may wait for the account's server (`startsServers`), which starts
 * slowly on a busy host. The response then has the state `creating` and the reason, and the
 * creation continues: in the background, by the supervisor after a failure, and after a restart of
 * Cloudlet.
 */
import type { Call } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import type { DatabaseViews } from '../database-view.ts';
import type { Engines } from '../engines.ts';
import type { Lifecycle } from '../life/lifecycle.ts';
import type { Database } from '../schema.ts';
import type { DatabaseRow } from '../store.ts';

/** Reverse proxies end calls after a minute. */
const TELL_MS = 45_000;
const REASON = 'starting';

interface FirstStartDeps {
  readonly lifecycle: Lifecycle;
  readonly views: DatabaseViews;
  readonly engines: Pick<Engines, 'about'>;
  /** Time after which the caller gets a response even if the database is not ready, ms. */
  readonly tellMs?: number | undefined;
}

interface Asked {
  readonly call: Call;
  /** Whether the host is still preparing the engine. */
  readonly isComing: boolean;
  /** Responds to the call. */
  readonly resolve: (response: Database) => void;
}

export class FirstStart {
  /** The row as it was inserted. */
  readonly creating: DatabaseRow;
  readonly #deps: FirstStartDeps;
  readonly #password: string;
  readonly #asked: Asked | null;
  #timer: NodeJS.Timeout | undefined;
  #telling: Promise<DatabaseRow> | null = null;

  /** `asked`: the caller, who gets a response before the end if it takes long; null: only at the end. */
  constructor(
    deps: FirstStartDeps,
    creating: DatabaseRow,
    { password, asked }: { readonly password: string; readonly asked: Asked | null },
  ) {
    this.#deps = deps;
    this.creating = creating;
    this.#password = password;
    this.#asked = asked;
  }

  /** The database has its address, which the response contains. */
  begin(): void {
    const asked = this.#asked;
    if (asked === null) return;
    this.#timer = setTimeout(() => {
      this.#telling = this.#tell(this.#password, asked);
      // The error for settled().
      this.#telling.catch(() => {});
    }, this.#deps.tellMs ?? TELL_MS);
  }

  /** The current row after all progress messages were stored. */
  async settled(): Promise<DatabaseRow> {
    clearTimeout(this.#timer);
    return (await this.#telling) ?? this.creating;
  }

  async #tell(password: string, { call, isComing, resolve }: Asked): Promise<DatabaseRow> {
    const { lifecycle, views, engines } = this.#deps;
    const { creating } = this;
    const { title } = engines.about(creating.engine);
    const reason_message = isComing
      ? `Waiting for ${title}, which this host is installing (GET /api/database-engines shows the progress)`
      : `Starting ${title} for the first time in this account`;
    const wanted = { reason_code: REASON, reason_message } as const;
    const response = await views.present({ ...creating, ...wanted }, password);
    const row = await lifecycle.commit(creating, wanted, { recorded: { call, response } });
    resolve(response);
    return row;
  }
}

/** Whether the owner knows the database, so that its creation must not be undone. */
export function isTold({ state, reason_code }: DatabaseRow): boolean {
  return state === 'creating' && reason_code === REASON;
}

/** Stores in the row why the database is not ready yet. Cloudlet retries. */
export async function noteDelay(
  { lifecycle, engines }: Pick<FirstStartDeps, 'lifecycle' | 'engines'>,
  row: DatabaseRow,
  error: unknown,
): Promise<void> {
  if (isAppError(error, 'shutting_down')) return;
  const why = isAppError(error) ? error.message : 'the operator can find the cause in the log';
  const reason_message = `${engines.about(row.engine).title} does not serve the database yet: ${why}. Cloudlet retries`;
  if (reason_message !== row.reason_message) await lifecycle.commit(row, { reason_message });
}
