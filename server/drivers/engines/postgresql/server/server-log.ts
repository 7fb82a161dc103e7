/** The log of our server, for continuous archiving. */
import type { Readable } from 'node:stream';
import type { LogServer, LogState } from '../../../../databases/points/server-logs.ts';
import type { BaseCopy } from '../../../../recovery/logs/log-lines.ts';
import type { Clients } from '../../../managed-server/programs/client-programs.ts';
import { dumpOf } from '../../../managed-server/programs/dump-streams.ts';
import type { PostgresqlLinks } from '../postgresql-links.ts';
import { ADMIN } from '../postgresql-store.ts';
import * as store from './log-archive-store.ts';

export interface PostgresqlLogDeps {
  readonly links: PostgresqlLinks;
  readonly clients: Clients;
  /** Secret from which our roles' passwords are derived; also in a recovered copy. */
  readonly secret: () => Buffer;
  readonly major: () => number | null;
}

/** Facts of a base copy that its recovery needs. */
export interface PostgresqlFacts {
  readonly major: number;
  readonly segmentBytes: number;
  /** Base64. */
  readonly secret: string;
}

const MAX_READ = 2 ** 20;

export class PostgresqlLog implements Omit<LogServer, 'accountId'> {
  readonly #deps: PostgresqlLogDeps;
  #facts: store.LogFacts | null = null;

  constructor(deps: PostgresqlLogDeps) {
    this.#deps = deps;
  }

  async state(): Promise<LogState | null> {
    return this.#deps.links.asAdmin(async (client) => {
      // Read again: the server may have other settings since a restart.
      this.#facts = await store.logFacts(client);
      return this.#facts.isKept ? this.#whole(await store.logState(client)) : null;
    });
  }

  begin(line: string): Promise<LogState> {
    return this.#deps.links.asAdmin(async (client) => {
      await store.keepLog(client, line);
      return this.#whole(await store.logState(client));
    });
  }

  read(from: bigint, to: bigint): Promise<Buffer> {
    const { segmentBytes } = this.#known();
    const within = Number(from % BigInt(segmentBytes));
    const bytes = Math.min(segmentBytes - within, MAX_READ, Number(to - from));
    const file = segmentFile(from, segmentBytes);
    return this.#deps.links.asAdmin((client) => store.readLog(client, { file, from: within, bytes }));
  }

  release(to: bigint): Promise<void> {
    return this.#deps.links.asAdmin((client) => store.releaseLog(client, to));
  }

  async copy(signal: AbortSignal): Promise<BaseCopy> {
    const { links, clients, secret, major } = this.#deps;
    const { segmentBytes } = this.#known();
    const { to: from } = await links.asAdmin(store.logState);
    const run = await clients.run(
      {
        program: 'copy',
        // The server sends its log without a request.
        args: ['--pgdata=-', '--format=tar', '--wal-method=none', '--checkpoint=fast', '--no-manifest'],
        user: ADMIN,
        password: links.passwordOf(ADMIN),
      },
      'point',
    );
    const stream = await dumpOf(run, {
      signal,
      asError: (complaint) => new Error(`pg_basebackup: ${complaint}`),
    });
    const ended = endOf(stream).then(async () => {
      const { at } = await links.asAdmin(store.logState);
      const facts: PostgresqlFacts = {
        major: major() ?? 0,
        segmentBytes,
        secret: secret().toString('base64'),
      };
      return { at, facts: { ...facts } };
    });
    ended.catch(() => {});
    return { from: from - (from % BigInt(segmentBytes)), stream, ended };
  }

  /** Log files have a fixed length: a recovery needs each from its beginning. */
  #whole(state: LogState): LogState {
    return { ...state, from: state.from - (state.from % BigInt(this.#known().segmentBytes)) };
  }

  #known(): store.LogFacts {
    if (this.#facts === null) throw new Error('the state is asked for first');
    return this.#facts;
  }
}

/**
 * `000000010000000A000000FF`: the file with the log from that position on. Our servers never leave
 * timeline 1; only copies do.
 */
export function segmentFile(position: bigint, segmentBytes: number): string {
  const number = position / BigInt(segmentBytes);
  const each = 2n ** 32n / BigInt(segmentBytes);
  const hex = (value: bigint) => value.toString(16).toUpperCase().padStart(8, '0');
  return `${hex(1n)}${hex(number / each)}${hex(number % each)}`;
}

function endOf(stream: Readable): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.once('end', resolve);
    stream.once('error', reject);
    stream.once('close', () => reject(new Error('the connection of the base copy was lost')));
  });
}
