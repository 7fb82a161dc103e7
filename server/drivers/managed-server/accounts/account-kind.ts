/** Engine and cloud, as the servers of accounts know them. */
import type { EngineName, Readiness } from '../../../databases/engine.ts';
import type { ServerCopy } from '../../../databases/points/server-logs.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { AppError } from '../../../platform/errors.ts';
import type { DiskLevel } from '../../../platform/host/disk-space.ts';
import type { ChildSlots } from '../../engine-children/child-slots.ts';
import type { Protocol } from '../../server-proxy/login-watch.ts';
import type { Listener, ServerProxy } from '../../server-proxy/server-proxy.ts';
import type { ManagedEngineOptions } from '../database-server.ts';
import type { AccountEngine } from '../sql-engine.ts';

/** Describes one engine for servers of accounts. `title`: for messages. */
export interface AccountKind {
  readonly name: EngineName;
  /** The protocol of its servers. */
  readonly protocol: Protocol;
  readonly title: string;
  readonly dumpFormats: readonly string[];
  /** Name of the folder with the data, in the home of a server. */
  readonly data: string;
  /** Creates the engine over one server; starts nothing. */
  make(options: ManagedEngineOptions): AccountEngine;
  /** The server of a copy, in the options' folder; missing if an engine has none. */
  recover?(options: ManagedEngineOptions, copy: ServerCopy, how: RecoverHow): Promise<AccountEngine>;
  /** Error codes of an engine that may not grow: read-only transaction, missing privilege. */
  readonly refused: readonly string[];
  /** Whether a held server (AccountEngine.hold) still allows deletes. */
  readonly deletesWhileHeld: boolean;
  readiness(folders: null, problem: AppError | null): Promise<Readiness>;
  /** The bytes that end the log-in of a user who cannot come in now. */
  refusal(text: string): Buffer;
}

export interface RecoverHow {
  /** ms; null: with the log. */
  readonly at: number | null;
  readonly signal: AbortSignal;
}

/** `firstPort`: first of the users' ports, one per account. */
export interface AccountOptions extends Omit<ManagedEngineOptions, 'account' | 'external'> {
  readonly servers: AccountServersDeps;
  /** The user of the server of an account; null: ours. */
  readonly uidOf: (accountId: number) => number | null;
  /** Whether the logs of the servers are archived, where the engine has them. */
  readonly keepsLogs?: boolean;
  /** Directory of first data that all clouds of this host begin with; missing: that of the program. */
  readonly templates?: string;
}

export interface AccountServersDeps {
  readonly proxy: Pick<ServerProxy, 'open' | 'shut' | 'lead' | 'refuse' | 'endConnections' | 'figures'>;
  readonly slots: ChildSlots;
  readonly idleMs: number;
  /** Maximum connections of all databases of an account. */
  readonly connections: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Fill level of the servers' disk. */
  readonly diskLevel: () => DiskLevel;
  /** See OfferedPorts; missing: there are no other nodes. */
  readonly everywhere?: (() => Promise<void>) | undefined;
}

/** Dependencies of one account's server. */
export interface AccountServerDeps {
  readonly accountId: number;
  /** Cloudlet's directory for all files of the server. */
  readonly folder: string;
  readonly engine: AccountEngine;
  readonly proxy: Pick<ServerProxy, 'open' | 'shut' | 'lead' | 'refuse' | 'endConnections' | 'figures'>;
  readonly listener: Listener;
  /** Waits for a process slot; the result releases it. `signal`: of the waiting caller. */
  readonly takeSlot: (signal?: AbortSignal) => Promise<() => void>;
  /** The refusal of a log-in, in the bytes of the engine's protocol. */
  readonly refusal: (text: string) => Buffer;
  readonly idleMs: number;
  /** Maximum connections of all databases. */
  readonly connections: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Runs before an idle server is stopped. Never rejects. */
  readonly beforeSleep: () => Promise<void>;
  readonly warn: (text: string) => void;
  /** See AccountKind. */
  readonly deletesWhileHeld: boolean;
}

/** How to work with an account's server. */
export interface Wish {
  /** Set for a user's statement, which ends if the user leaves or another account needs the server. */
  readonly signal?: AbortSignal | undefined;
  /** A start may take any time while it makes progress. */
  readonly isPatient?: boolean | undefined;
}
