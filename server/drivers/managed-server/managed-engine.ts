/** What engines with a server have in common. */
import { isIPv6 } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Endpoint, Readiness } from '../../databases/engine.ts';
import { AppError } from '../../platform/errors.ts';
import type { HostProcesses } from '../host-process/host-processes.ts';
import type { EngineServer } from './engine-server.ts';
import type { ManagedServerDeps } from './managed-server.ts';
import type { ServerTls } from './server-tls.ts';
import type { ServerAddress } from './server-url.ts';
import type { NoPrograms } from './unpacked-programs.ts';

export interface ManagedEngineOptions {
  /** Ours, for all that is kept of it. */
  readonly folder: string;
  readonly processes: HostProcesses;
  /** First of its numbers of users of its own; null: it runs as ours. */
  readonly uidBase: number | null;
  readonly alarms: ManagedServerDeps['alarms'];
  /** Less is free than must stay so. */
  readonly isDiskLow: () => boolean;
  readonly warn: (text: string) => void;
  /** The operator's own server; null: one of ours is looked after. */
  readonly external?: ServerAddress | null;
  /** For users on other hosts; null: databases are reached on loopback alone, without TLS. */
  readonly tls?: ServerTls | null;
  /** Of the server, when it is first made; where it is taken, the next that is free. */
  readonly firstPort: number;
}

type Found = { readonly version: string } | NoPrograms;

/** By the programs that were found, what these cannot do, and why the last start of the server failed. */
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

/** Throws `engine_unavailable` when there are none. */
export function programsOrThrow<P extends { readonly version: string }>(
  title: string,
  found: P | NoPrograms,
): P {
  if ('version' in found) return found;
  throw new AppError('engine_unavailable', `${title} is not available on this host: ${found.reason}`, {
    hint: found.fix,
  });
}

/** Where users connect. */
export function endpointOf(port: number | null, tls: ServerTls | null): Omit<Endpoint, 'uri'> {
  return { host: tls?.host ?? '127.0.0.1', port: port ?? 0, tls: tls !== null, ca: tls?.ca ?? null };
}

/** `db.example:5432`. */
export function hostAndPort({ host, port }: Pick<Endpoint, 'host' | 'port'>): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

const FIRST_ANSWER_MS = 2000;

/** Of a server of the operator's. */
export interface ExternalSaid {
  readonly version: string | null;
  readonly limits: readonly string[];
}

/** What it cannot is said also while it is there. */
export async function externalReadiness(
  server: EngineServer,
  said: () => Promise<ExternalSaid>,
): Promise<Readiness> {
  // Whoever asks first waits a little for the first answer.
  if (!server.isUp && server.problem === null)
    await Promise.race([server.up().catch(() => {}), sleep(FIRST_ANSWER_MS, null, { ref: false })]);
  const { version, limits } = await said();
  const { problem, isUp } = server;
  const reason =
    problem?.message ?? (limits.length === 0 ? null : `A server of the operator's own: ${limits.join('; ')}`);
  return { available: isUp, version, source: 'external', reason, fix: problem?.hint ?? null };
}
