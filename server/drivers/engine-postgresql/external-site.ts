/** A PostgreSQL of the operator's: we are a guest there, with databases and roles of our own. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { AppError } from '../../platform/errors.ts';
import { ClientPrograms } from '../managed-server/client-programs.ts';
import { ExternalServer } from '../managed-server/external-server.ts';
import {
  externalReadiness,
  type ManagedEngineOptions,
  programsOrThrow,
} from '../managed-server/managed-engine.ts';
import { makeServerSecret, markOf, readServerSecret } from '../managed-server/server-secret.ts';
import { caOf, type ServerAddress, tlsOf } from '../managed-server/server-url.ts';
import type { NoPrograms } from '../managed-server/unpacked-programs.ts';
import { type ClientWork, clientCommand } from './client-commands.ts';
import { type ServerFacts, serverFacts, unmetNeed, whyNotReached } from './external-server-facts.ts';
import { type LinksDeps, PostgresqlLinks } from './postgresql-links.ts';
import { findPrograms, type PostgresqlPrograms } from './postgresql-programs.ts';
import type { PostgresqlSite } from './site.ts';

const DATABASE = 'postgres';

/** `begin`: what is to be done when it was first found good. */
export function externalSite(
  options: Pick<ManagedEngineOptions, 'folder' | 'processes' | 'uidBase' | 'alarms'>,
  address: ServerAddress,
  begin: () => Promise<void>,
): PostgresqlSite {
  const { folder, processes, uidBase, alarms } = options;
  const keeper = join(folder, 'external');
  let facts: ServerFacts | null = null;
  const secret = () => {
    mkdirSync(keeper, { recursive: true, mode: 0o700 });
    makeServerSecret({ keeper });
    return readServerSecret({ keeper });
  };
  const { host, port, user, tls } = address;
  const links = linksTo(address, { secret, isUp: () => server.isUp });
  const check = async () => {
    facts = await factsOf(links, address);
  };
  const server = new ExternalServer({ name: 'postgresql', alarms, check, begin });
  const programs = () => clientPrograms(facts?.major ?? null);
  const clients = new ClientPrograms({
    processes,
    uids: uidBase === null ? null : uidBase + 1,
    folder: join(folder, 'clients'),
    name: 'postgresql',
    socket: null,
    command: async (work: ClientWork) =>
      clientCommand(
        programsOrThrow('pg_dump', await programs()),
        { host, port, ca: tls ? (caOf(address) ?? rootCertificates.join('\n')) : null },
        work,
      ),
  });
  return {
    server,
    links,
    clients,
    guest: () => ({ mark: markOf(secret()), member: facts?.isSuperuser ? null : user }),
    endpoint: () => ({ host, port, tls, ca: tls ? caOf(address) : null }),
    upgrade: () => {
      throw new AppError('engine_unavailable', "The server of PostgreSQL is the operator's own", {
        hint: 'upgrade it by its own means; Cloudlet uses what it finds',
      });
    },
    readiness: () =>
      externalReadiness(server, async () => {
        const version = facts?.version ?? null;
        const limits = facts === null ? [] : [...facts.limits, ...whyNoDumps(await programs())];
        return { version, limits, extensions: facts?.extensions ?? [] };
      }),
  };
}

/** Asks it once, for `cloudlet doctor`. Throws `engine_unavailable` with what is wrong and the fix. */
export async function probe(address: ServerAddress): Promise<ServerFacts> {
  const secret = () => Buffer.alloc(0);
  const links = linksTo(address, { secret, isUp: () => false });
  return factsOf(links, address).finally(() => links.close());
}

function linksTo(address: ServerAddress, more: Pick<LinksDeps, 'secret' | 'isUp'>): PostgresqlLinks {
  const { host, port, user, password, database } = address;
  const administrator = { user, database: database || DATABASE, password: () => password };
  return new PostgresqlLinks({ administrator, place: { host, port, tls: () => tlsOf(address) }, ...more });
}

async function factsOf(links: PostgresqlLinks, address: ServerAddress): Promise<ServerFacts> {
  const facts = await links.asAdmin(serverFacts).catch((error) => {
    throw whyNotReached(error, address);
  });
  const unmet = unmetNeed(facts, address);
  if (unmet !== null) throw unmet;
  return facts;
}

/** Of the server's major version, else newer ones: an older one cannot dump. */
async function clientPrograms(major: number | null): Promise<PostgresqlPrograms | NoPrograms> {
  const same = await findPrograms(major);
  if ('version' in same || major === null) return same;
  const any = await findPrograms(null);
  if ('version' in any && any.major >= major) return any;
  return {
    reason: `pg_dump and psql of PostgreSQL ${major} are not on this host`,
    fix: `install the client programs of PostgreSQL ${major} or newer on the host of Cloudlet`,
  };
}

function whyNoDumps(found: PostgresqlPrograms | NoPrograms): string[] {
  return 'reason' in found ? [`there are no dumps, loads and copies: ${found.reason}`] : [];
}
