/** What it takes to be a guest on a server of the operator's, whichever engine it is of. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { AppError } from '../../platform/errors.ts';
import { type ClientCommand, ClientPrograms } from './client-programs.ts';
import { ExternalServer } from './external-server.ts';
import {
  type ExternalSaid,
  externalReadiness,
  type ManagedEngineOptions,
  programsOrThrow,
} from './server-engine.ts';
import { makeServerSecret, readServerSecret } from './server-secret.ts';
import { caOf, type ServerAddress } from './server-url.ts';
import type { NoPrograms } from './unpacked-programs.ts';

export interface ExternalFacts {
  readonly version: string;
  /** What is not as on a server of our own, for humans. */
  readonly limits: readonly string[];
}

/** Where client programs find it. */
export interface RemotePlace {
  readonly host: string;
  readonly port: number;
  /** Certificates to trust, PEM; null: without TLS. */
  readonly ca: string | null;
}

export interface ExternalPlaceHow<Facts, Programs, Work> {
  /** The engine's name. */
  readonly name: string;
  /** The program that dumps, for humans. */
  readonly dumper: string;
  /** Asks the server. Throws `engine_unavailable` with what is wrong and the fix. */
  readonly ask: () => Promise<Facts>;
  /** What is to be done when it was first found good. */
  readonly begin: () => Promise<void>;
  /** Those of clients. `facts`: null until the server was found good. */
  readonly programs: (facts: Facts | null) => Promise<Programs | NoPrograms>;
  readonly command: (programs: Programs, place: RemotePlace, work: Work) => ClientCommand;
}

export function externalPlace<Facts extends ExternalFacts, Programs extends { version: string }, Work>(
  options: Pick<ManagedEngineOptions, 'folder' | 'processes' | 'uidBase' | 'alarms'>,
  address: ServerAddress,
  { name, dumper, ask, begin, programs, command }: ExternalPlaceHow<Facts, Programs, Work>,
) {
  const { folder, processes, uidBase, alarms } = options;
  const { host, port, tls } = address;
  const keeper = join(folder, 'external');
  let facts: Facts | null = null;
  const check = async () => {
    facts = await ask();
  };
  const server = new ExternalServer({ name, alarms, check, begin });
  const uids = uidBase === null ? null : uidBase + 1;
  const clients = new ClientPrograms({ processes, uids, folder: join(folder, 'clients'), name }).of({
    // The server is everybody's, so these are.
    accountId: null,
    socket: null,
    command: async (work: Work) => {
      const ca = tls ? (caOf(address) ?? rootCertificates.join('\n')) : null;
      return command(programsOrThrow(dumper, await programs(facts)), { host, port, ca }, work);
    },
  });
  return {
    server,
    clients,
    /** Null: it was not found good yet. */
    facts: () => facts,
    secret: () => {
      mkdirSync(keeper, { recursive: true, mode: 0o700 });
      makeServerSecret({ keeper });
      return readServerSecret({ keeper });
    },
    endpoint: () => ({ host, port, tls, ca: tls ? caOf(address) : null }),
    readiness: () => externalReadiness(server, async () => saidOf(facts, await programs(facts))),
  };
}

function saidOf(facts: ExternalFacts | null, programs: object | NoPrograms): ExternalSaid {
  if (facts === null) return { version: null, limits: [] };
  const { version, limits } = facts;
  const dumps = 'reason' in programs ? [`there are no dumps, loads and copies: ${programs.reason}`] : [];
  return { version, limits: [...limits, ...dumps] };
}

/** Driver's errors by what they mean: the user is not let in, and there is no such database. */
export interface RefusalCodes {
  readonly user: readonly string[];
  readonly database: string;
  /** Where the operator lets users in, for humans. */
  readonly doorkeeper: string;
}

/** Says nothing that the server or the network did not: never the password. */
export function whyNotReached(
  error: unknown,
  title: string,
  { address, codes }: { readonly address: ServerAddress; readonly codes: RefusalCodes },
): AppError {
  if (error instanceof AppError) return error;
  const { setting, host, port } = address;
  const { code, message } = error as NodeJS.ErrnoException;
  const refuse = (what: string, hint: string) =>
    new AppError('engine_unavailable', what, { hint, retryAfterSeconds: 5, cause: error });
  const where = `The operator's ${title} at ${host}:${port}`;
  if (codes.user.includes(String(code))) {
    const fix = `correct user and password in ${setting}, let that user in (${codes.doorkeeper}), and restart Cloudlet`;
    return refuse(`${where} refuses the user in ${setting}`, fix);
  }
  if (code === codes.database) return refuse(`${where} has no database of that name`, `correct ${setting}`);
  return refuse(
    `${where} cannot be reached: ${message || code}`,
    `start it, or correct ${setting}; a certificate of one's own is named by sslrootcert=PATH in it`,
  );
}

/** The server is the operator's: nothing of it is ours to change. */
export function unmet(what: string, hint: string): AppError {
  return new AppError('engine_unavailable', what, { hint });
}
