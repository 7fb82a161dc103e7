/** A PostgreSQL of the operator's: we are a guest there, with databases and roles of our own. */
import { AppError } from '../../platform/errors.ts';
import { externalPlace, whyNotReached } from '../managed-server/external-place.ts';
import type { ManagedEngineOptions } from '../managed-server/server-engine.ts';
import type { LinksDeps } from '../managed-server/server-links.ts';
import { markOf } from '../managed-server/server-secret.ts';
import { type ServerAddress, tlsOf } from '../managed-server/server-url.ts';
import type { NoPrograms } from '../managed-server/unpacked-programs.ts';
import { type ClientWork, clientCommand } from './client-commands.ts';
import { REFUSALS, type ServerFacts, serverFacts, unmetNeed } from './external-server-facts.ts';
import { PostgresqlLinks } from './postgresql-links.ts';
import { findPrograms, type PostgresqlPrograms } from './postgresql-programs.ts';
import type { PostgresqlSite } from './site.ts';

const DATABASE = 'postgres';

/** `begin`: what is to be done when it was first found good. */
export function externalSite(
  options: Pick<ManagedEngineOptions, 'folder' | 'processes' | 'uidBase' | 'alarms'>,
  address: ServerAddress,
  begin: () => Promise<void>,
): PostgresqlSite {
  const place = externalPlace(options, address, {
    name: 'postgresql',
    dumper: 'pg_dump',
    ask: () => factsOf(links, address),
    begin,
    programs: (facts: ServerFacts | null) => clientPrograms(facts?.major ?? 0),
    command: (programs: PostgresqlPrograms, at, work: ClientWork) => clientCommand(programs, at, work),
  });
  const { server, clients, facts, secret, endpoint, readiness } = place;
  const links = linksTo(address, { secret, isUp: () => server.isUp });
  return {
    server,
    links,
    clients,
    guest: () => ({ mark: markOf(secret()), member: facts()?.isSuperuser ? null : address.user }),
    endpoint,
    upgrade: () => {
      throw new AppError('engine_unavailable', "The server of PostgreSQL is the operator's own", {
        hint: 'upgrade it by its own means; Cloudlet uses what it finds',
      });
    },
    readiness: async () => Object.assign(await readiness(), { extensions: facts()?.extensions ?? [] }),
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
    throw whyNotReached(error, 'PostgreSQL', { address, codes: REFUSALS });
  });
  const problem = unmetNeed(facts, address);
  if (problem !== null) throw problem;
  return facts;
}

/** Programs of the server's major version, else newer ones: an older one cannot dump. */
async function clientPrograms(major: number): Promise<PostgresqlPrograms | NoPrograms> {
  for (const wanted of [major, null]) {
    const found = await findPrograms(wanted);
    if ('version' in found && found.hasClients && found.major >= major) return found;
  }
  return {
    reason: `pg_dump and psql of PostgreSQL ${major} are not on this host`,
    fix: `install the client programs of PostgreSQL ${major} or newer on the host of Cloudlet`,
  };
}
