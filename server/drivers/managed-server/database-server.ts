/** The server that the databases of an engine are on, and the messages that all such engines share. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Readiness } from '../../databases/engine.ts';
import { AppError } from '../../platform/errors.ts';
import type { HostProcesses } from '../host-process/host-processes.ts';
import type { ServerTls } from './links/server-tls.ts';
import type { ServerAddress } from './links/server-url.ts';
import type { ManagedServerDeps } from './managed-server.ts';
import type { ServerLog } from './processes/server-log.ts';
import type { ClientPrograms } from './programs/client-programs.ts';
import type { DataTemplate } from './programs/data-template.ts';
import type { NoPrograms } from './programs/unpacked-programs.ts';

/** The server of an engine: run by Cloudlet, or by the operator. */
export interface EngineServer {
  /** The PID of its process, for tests and figures; null: it does not run, or is not ours. */
  readonly pid: number | null;
  /** Whether a server with data exists. */
  readonly isMade: boolean;
  /** Whether the server answered the last request. */
  readonly isUp: boolean;
  /** The output of the server and its sessions; null: Cloudlet cannot read it. */
  readonly log: ServerLog | null;
  /** Why the server was unavailable last time; null: available. */
  readonly problem: AppError | null;
  /** Ensures that it answers. Throws `engine_unavailable`; it is then retried periodically. */
  up(how?: { readonly isPatient?: boolean | undefined }): Promise<void>;
  close(): Promise<void>;
}

export interface ManagedEngineOptions {
  /** Cloudlet's directory for all files of the server. */
  readonly folder: string;
  readonly processes: HostProcesses;
  /** The first of its user ids; null: it runs as our own user. */
  readonly uidBase: number | null;
  /** The account of the server; null: all accounts share it, as in earlier versions. */
  readonly account?: OwnServer | null;
  readonly alarms: ManagedServerDeps['alarms'];
  /** Whether the free space is below the reserve. */
  readonly isDiskLow: () => boolean;
  readonly warn: (text: string) => void;
  /** The operator's server; null: Cloudlet runs one. */
  readonly external?: ServerAddress | null;
  /** Null: databases are on loopback only, without TLS. */
  readonly tls?: ServerTls | null;
  /** Initial port of the server; if taken, the next free one. */
  readonly firstPort: number;
}

/** The server of one account. */
export interface OwnServer {
  readonly accountId: number;
  /** The port for users. */
  readonly port: number;
  /** User of the server; null: Cloudlet's. */
  readonly uid: number | null;
  /** Connections of its databases together. */
  readonly connections: number;
  readonly template: DataTemplate;
  /** Whether the log of the server is archived. */
  readonly keepsLog: boolean;
  /** Client programs, shared by all accounts. */
  readonly clients: ClientPrograms;
  /** Called when the server ends unexpectedly. */
  readonly onEnd: () => void;
}

type Found = { readonly version: string } | NoPrograms;

/**
 * Depends on the programs that were found, on their limitations, and on why the last start of the server
 * failed.
 */
export function readinessOf(
  found: Found,
  problem: AppError | null,
  missing: NoPrograms | null = null,
): Readiness {
  const source = 'managed';
  if ('reason' in found) return { available: false, version: null, source, ...found };
  const reason = problem?.message ?? missing?.reason ?? null;
  const fix = problem === null ? (missing?.fix ?? null) : (problem.hint ?? null);
  return { available: problem === null, version: found.version, source, reason, fix };
}

/** Throws `engine_unavailable` without programs. */
export function programsOrThrow<P extends { readonly version: string }>(
  title: string,
  found: P | NoPrograms,
): P {
  if ('version' in found) return found;
  throw new AppError('engine_unavailable', `${title} is not available on this host: ${found.reason}`, {
    hint: found.fix,
  });
}

/**
 * Servers behind the proxy take the first free port from here on: far from the public ports, which begin
 * at `firstPort`.
 */
export function innerPort(firstPort: number): number {
  return firstPort > 2 * PUBLIC_PORTS ? firstPort - PUBLIC_PORTS : firstPort + PUBLIC_PORTS;
}

/** Distance of the two port ranges, in accounts. */
const PUBLIC_PORTS = 5000;
const FIRST_ANSWER_MS = 2000;

/** The readiness of the operator's server. */
export interface ExternalSaid {
  readonly version: string | null;
  readonly limits: readonly string[];
}

/** The reason lists its limits even if available. */
export async function externalReadiness(
  server: EngineServer,
  said: () => Promise<ExternalSaid>,
): Promise<Readiness> {
  // The first caller waits a little for the first answer.
  if (!server.isUp && server.problem === null)
    await Promise.race([server.up().catch(() => {}), sleep(FIRST_ANSWER_MS, null, { ref: false })]);
  const { version, limits } = await said();
  const { problem, isUp } = server;
  const reason =
    problem?.message ?? (limits.length === 0 ? null : `The operator runs this server: ${limits.join('; ')}`);
  return { available: isUp, version, source: 'external', reason, fix: problem?.hint ?? null };
}

export function timedOut(cause: Error): AppError {
  return new AppError('query_timeout', 'The statement ran for too long and was stopped', {
    hint: 'make it smaller, or run it with your own driver',
    cause,
  });
}

export function connectionEnded(title: string, cause: Error): AppError {
  return new AppError('engine_unavailable', `${title} ended the connection`, {
    hint: 'try again',
    retryAfterSeconds: 1,
    cause,
  });
}

export function diskFull(cause: Error): AppError {
  return new AppError('host_disk_full', 'The disk of the database server is full', { cause });
}
