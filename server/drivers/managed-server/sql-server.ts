/**
 * The server of an SQL engine, for any engine: one that Cloudlet runs, on a socket and on loopback,
 * or the operator's, where Cloudlet is a guest with its own databases and users.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import type { EngineName, Readiness } from '../../databases/engine.ts';
import { AppError } from '../../platform/errors.ts';
import { isCode } from '../../platform/files.ts';
import {
  type EngineServer,
  externalReadiness,
  innerPort,
  type ManagedEngineOptions,
} from './database-server.ts';
import { ExternalServer } from './links/external-server.ts';
import type { LinksDeps } from './links/server-links.ts';
import { makeServerSecret, readServerSecret, rolePassword } from './links/server-secret.ts';
import { type Address, endpointOf, verifiedEndpointOf } from './links/server-tls.ts';
import { caOf, type ServerAddress, tlsOf } from './links/server-url.ts';
import { ManagedServer, type ServerFolders, type ServerKind, type ServerKindDeps } from './managed-server.ts';
import { SHARED, userOfData } from './processes/server-owner.ts';
import {
  type ClientCommand,
  ClientPrograms,
  type Clients,
  type ClientWork,
} from './programs/client-programs.ts';
import { firstSecret, forgetFirstSecret } from './programs/data-template.ts';
import type { NoPrograms } from './programs/unpacked-programs.ts';
import { socketFolder } from './server-data.ts';

type Folders = Omit<ServerFolders, 'seen'>;

/** Connections to a SQL server. */
export interface SqlLinks {
  passwordOf(role: string): string;
  /** A minimal request on a separate connection. */
  probe(): Promise<unknown>;
  /** Changes the password of the administrator, who has `password`, to this server's. */
  takeAdministration(password: string): Promise<void>;
  close(): Promise<void> | void;
}

export interface ExternalFacts {
  readonly version: string;
  /** Differences to a server that Cloudlet runs, for humans. */
  readonly limits: readonly string[];
}

/** The server for a client program: one of ours, by socket, whose name may contain the port. */
export type ClientTarget<F> = { readonly folders: Folders; readonly port: number } | RemoteTarget<F>;

/** The operator's server, over the network. */
export interface RemoteTarget<F> {
  /** Null: not known yet. */
  readonly facts: F | null;
  readonly host: string;
  readonly port: number;
  /** Certificates to trust, PEM; null: without TLS. */
  readonly ca: string | null;
}

/** Describes one SQL engine: programs, connections and statements. */
export interface SqlKind<L extends SqlLinks, F extends ExternalFacts> {
  readonly name: EngineName;
  /** For humans. */
  readonly title: string;
  /** The administrator of our servers, and its database. */
  readonly administrator: { readonly user: string; readonly database: string };
  /** Code of the driver's error for a wrong password. */
  readonly wrongPassword: string;
  /** `facts`: of the operator's server; null: not yet known, or the server is ours. */
  links(deps: LinksDeps, facts: () => F | null): L;
  /** The process of a server that Cloudlet runs. */
  process(deps: ServerKindDeps): ServerKind;
  /** `folders`: of the server that the programs are for; null: any. */
  readiness(folders: Folders | null, problem: AppError | null): Promise<Readiness>;
  /** The command of a client program. Throws DumpsMissing, and `engine_unavailable` without programs. */
  command(target: ClientTarget<F>, work: ClientWork): Promise<ClientCommand>;
  readonly external: {
    /** For humans. */
    readonly title: string;
    /** The database to connect to when the address names none. */
    readonly database: string;
    readonly refusals: RefusalCodes;
    facts(links: L): Promise<F>;
    /** Why the server cannot be used, with the fix; null: it can. `facts`: null before they were read. */
    unmet(facts: F | null, address: ServerAddress): AppError | null;
    clients(facts: F): Promise<object | NoPrograms>;
  };
}

/** Driver's codes for refused log-ins. */
export interface RefusalCodes {
  readonly user: readonly string[];
  readonly database: string;
  /** The server's access setting, for messages. */
  readonly accessRules: string;
}

export interface SqlServer<L, F = unknown> {
  readonly server: EngineServer;
  readonly links: L;
  readonly clients: Clients;
  /** Null: the server is ours, or was not checked yet. */
  facts(): F | null;
  /** The key from which passwords of our roles are derived. */
  secret(): Buffer;
  /** The databases' endpoint, without their names. */
  endpoint(): Address;
  /** The same over TLS where TLS is optional; null: it is off or required. */
  verifiedEndpoint(): Address | null;
  readiness(): Promise<Readiness>;
}

/** `begin` runs each time our server is up, and once when the operator's first works. */
export function sqlServer<L extends SqlLinks, F extends ExternalFacts>(
  kind: SqlKind<L, F>,
  options: ManagedEngineOptions,
  begin: () => Promise<void>,
): SqlServer<L, F> {
  const { external = null } = options;
  return external === null
    ? ownServer(kind, options, begin)
    : externalServer(kind, { ...options, external }, begin);
}

/** The user that runs the engine's server: the account's, or the shared one; null: ours. */
export function serverUser({
  account = null,
  folder,
  uidBase,
}: Pick<ManagedEngineOptions, 'account' | 'folder' | 'uidBase'>): number | null {
  return account === null ? userOfData(join(folder, SHARED), uidBase) : account.uid;
}

function ownServer<L extends SqlLinks, F extends ExternalFacts>(
  kind: SqlKind<L, F>,
  options: ManagedEngineOptions,
  begin: () => Promise<void>,
): SqlServer<L, F> {
  const { folder, processes, alarms, warn, tls = null, firstPort, account = null } = options;
  const { user, database } = kind.administrator;
  const uid = serverUser(options);
  let known: Buffer | null = null;
  // Read each time: a server is removed with its last database, and may be recreated with another
  // secret while this process runs.
  const secret = () => {
    try {
      known = readServerSecret(server.folders);
    } catch (error) {
      if (known === null || !isCode(error, 'ENOENT')) throw error;
    }
    return known;
  };
  const socket = () => ({ folder: socketFolder(server.folders), port: server.port ?? 0 });
  const passwordOf = (role: string) => links.passwordOf(role);
  const administrator = { user, database, password: () => passwordOf(user) };
  const links: L = kind.links(
    { administrator, endpoint: { socket }, secret, isUp: () => server.isUp },
    () => null,
  );
  const greet = async () => {
    await takeAdministration(kind, server.folders, links);
    await begin();
  };
  const process = kind.process({
    processes,
    uid,
    firstPort: innerPort(firstPort),
    tls,
    template: account?.template ?? null,
    connections: account?.connections ?? null,
    keepsLog: account?.keepsLog ?? false,
    passwordOf,
    greet,
    probe: () => links.probe(),
  });
  const server = new ManagedServer({
    kind: process,
    processes,
    uid,
    folder: account === null ? join(folder, SHARED) : folder,
    alarms,
    warn,
    onEnd: account?.onEnd ?? (() => {}),
  });
  const programs = account?.clients ?? clientPrograms(kind, options);
  const clients = programs.of({
    accountId: account?.accountId ?? null,
    socket: () => socket().folder,
    command: (work) => kind.command({ folders: server.folders, port: server.port ?? 0 }, work),
  });
  return {
    server,
    links,
    clients,
    facts: () => null,
    secret,
    endpoint: () => endpointOf(account?.port ?? server.port, tls),
    verifiedEndpoint: () => verifiedEndpointOf(account?.port ?? server.port, tls),
    readiness: () => kind.readiness(server.folders, server.problem),
  };
}

/** Client programs of an engine, for all its servers. */
export function clientPrograms(
  { name }: { readonly name: string },
  { folder, processes, uidBase }: Pick<ManagedEngineOptions, 'folder' | 'processes' | 'uidBase'>,
): ClientPrograms {
  const uids = uidBase === null ? null : uidBase + 1;
  return new ClientPrograms({ processes, uids, folder: join(folder, 'clients'), name });
}

/** Gives the administrator of copied data this server's password. */
async function takeAdministration(
  {
    administrator: { user },
    wrongPassword,
  }: { readonly administrator: { readonly user: string }; readonly wrongPassword: string },
  folders: Folders,
  links: SqlLinks,
): Promise<void> {
  const first = firstSecret(folders);
  if (first === null) return;
  try {
    await links.takeAdministration(rolePassword(first, user));
  } catch (error) {
    // The administrator already has a password.
    if ((error as { code?: unknown }).code !== wrongPassword) throw error;
  }
  forgetFirstSecret(folders);
}

function externalServer<L extends SqlLinks, F extends ExternalFacts>(
  kind: SqlKind<L, F>,
  options: ManagedEngineOptions & { readonly external: ServerAddress },
  begin: () => Promise<void>,
): SqlServer<L, F> {
  const { folder, alarms, external: address } = options;
  const { host, port, tls } = address;
  const { name, external } = kind;
  const keeper = join(folder, 'external');
  let facts: F | null = null;
  const secret = () => {
    mkdirSync(keeper, { recursive: true, mode: 0o700 });
    makeServerSecret({ keeper });
    return readServerSecret({ keeper });
  };
  const check = async () => {
    facts = await askServer(kind, links, address);
  };
  const server = new ExternalServer({ name, alarms, check, begin });
  const deps = { ...externalDeps(kind, address), secret, isUp: () => server.isUp };
  const links = kind.links(deps, () => facts);
  const clients = clientPrograms(kind, options).of({
    // All accounts share the server and its clients.
    accountId: null,
    socket: null,
    command: (work) => {
      const ca = tls ? (caOf(address) ?? rootCertificates.join('\n')) : null;
      return kind.command({ facts, host, port, ca }, work);
    },
  });
  return {
    server,
    links,
    clients,
    facts: () => facts,
    secret,
    endpoint: () => ({ host, port, tls, ca: tls ? caOf(address) : null }),
    verifiedEndpoint: () => null,
    readiness: () =>
      externalReadiness(server, async () => {
        if (facts === null) return { version: null, limits: [] };
        const { version, limits } = facts;
        const programs = await external.clients(facts);
        if (!('reason' in programs)) return { version, limits };
        return {
          version,
          limits: [...limits, `dumps, loads and copies are not available: ${programs.reason}`],
        };
      }),
  };
}

/** Connects to the operator's server once, for `cloudlet doctor`. Throws `engine_unavailable`. */
export async function probeExternal<L extends SqlLinks, F extends ExternalFacts>(
  kind: SqlKind<L, F>,
  address: ServerAddress,
): Promise<F> {
  const deps = { ...externalDeps(kind, address), secret: () => Buffer.alloc(0), isUp: () => false };
  const links = kind.links(deps, () => null);
  return askServer(kind, links, address).finally(() => links.close());
}

function externalDeps(
  { external }: { readonly external: { readonly database: string } },
  address: ServerAddress,
): Pick<LinksDeps, 'administrator' | 'endpoint'> {
  const { host, port, user, password, database } = address;
  return {
    administrator: { user, database: database || external.database, password: () => password },
    endpoint: { host, port, tls: () => tlsOf(address) },
  };
}

async function askServer<L extends SqlLinks, F extends ExternalFacts>(
  { external }: SqlKind<L, F>,
  links: L,
  address: ServerAddress,
): Promise<F> {
  const refused = external.unmet(null, address);
  if (refused !== null) throw refused;
  const facts = await external.facts(links).catch((error) => {
    throw whyNotReached(error, address, external);
  });
  const problem = external.unmet(facts, address);
  if (problem !== null) throw problem;
  return facts;
}

/** Names the error of the server or the network, never the password. */
function whyNotReached(
  error: unknown,
  { setting, host, port, database }: ServerAddress,
  external: { readonly title: string; readonly database: string; readonly refusals: RefusalCodes },
): AppError {
  if (error instanceof AppError) return error;
  const { title, refusals } = external;
  const { code, message } = error as NodeJS.ErrnoException;
  const refuse = (what: string, hint: string) =>
    new AppError('engine_unavailable', what, { hint, retryAfterSeconds: 5, cause: error });
  const where = `The operator's ${title} at ${host}:${port}`;
  if (refusals.user.includes(String(code))) {
    const fix = `correct user and password in ${setting}, allow its log-in (${refusals.accessRules}), and restart Cloudlet`;
    return refuse(`${where} refuses the user in ${setting}`, fix);
  }
  if (code === refusals.database)
    return refuse(`${where} has no database ${database || external.database}`, `correct ${setting}`);
  return refuse(
    `${where} cannot be reached: ${message || code}`,
    `start it, or correct ${setting}; name a private certificate with sslrootcert=PATH in it`,
  );
}

/** An error about the operator's server, which only the operator can change. */
export function unmet(what: string, hint: string): AppError {
  return new AppError('engine_unavailable', what, { hint });
}

/** The folder of the server is missing, or on an unmounted disk. */
export function serverMissing(database: string): AppError {
  return new AppError('engine_unavailable', `The server of the database ${database} is missing`, {
    hint: 'restore its folder below databases/ in the data directory; a disk may not be mounted',
  });
}
