/** A MySQL or MariaDB of the operator's: we are a guest there, with databases and users of our own. */
import { externalPlace, whyNotReached } from '../managed-server/external-place.ts';
import type { ManagedEngineOptions } from '../managed-server/server-engine.ts';
import { markOf } from '../managed-server/server-secret.ts';
import { type ServerAddress, tlsOf } from '../managed-server/server-url.ts';
import { type ClientWork, clientCommand } from './client-commands.ts';
import * as contents from './contents-store.ts';
import { REFUSALS, type ServerFacts, serverFacts, unmetNeed, unverifiable } from './external-server-facts.ts';
import { MysqlLinks, type MysqlLinksDeps } from './mysql-links.ts';
import { findClients, type MysqlClientPrograms } from './mysql-programs.ts';
import { guestWays, OWN_WAYS } from './server-ways.ts';
import type { MysqlSite } from './site.ts';

const DATABASE = 'information_schema';

/** `begin`: what is to be done when it was first found good. */
export function externalSite(
  options: Pick<ManagedEngineOptions, 'folder' | 'processes' | 'uidBase' | 'alarms'>,
  address: ServerAddress,
  begin: () => Promise<void>,
): MysqlSite {
  const place = externalPlace(options, address, {
    name: 'mysql',
    dumper: 'mariadb-dump',
    ask: () => factsOf(links, address),
    begin,
    programs: (_facts: ServerFacts | null) => findClients(),
    command: (programs: MysqlClientPrograms, at, work: ClientWork) => clientCommand(programs, at, work),
  });
  const { server, clients, facts, secret, endpoint, readiness } = place;
  const ways = () => {
    const { kind = 'mariadb', countsUse = false } = facts() ?? {};
    return guestWays(kind, { mark: `c_${markOf(secret()).replace(/^\w+ /, '')}`, countsUse });
  };
  const links = linksTo(address, { secret, isUp: () => server.isUp, ways });
  return {
    server,
    links,
    clients,
    // Nobody else may read all of a database, with its routines.
    dumper: () => ({ user: address.user, password: address.password }),
    fileBytes: contents.fileBytes,
    endpoint,
    readiness,
  };
}

/** Asks it once, for `cloudlet doctor`. Throws `engine_unavailable` with what is wrong and the fix. */
export async function probe(address: ServerAddress): Promise<ServerFacts> {
  const secret = () => Buffer.alloc(0);
  const links = linksTo(address, { secret, isUp: () => false, ways: () => OWN_WAYS });
  return factsOf(links, address).finally(() => links.close());
}

function linksTo(address: ServerAddress, more: Pick<MysqlLinksDeps, 'secret' | 'isUp' | 'ways'>): MysqlLinks {
  const { host, port, user, password, database } = address;
  const administrator = { user, database: database || DATABASE, password: () => password };
  return new MysqlLinks({ administrator, place: { host, port, tls: () => tlsOf(address) }, ...more });
}

async function factsOf(links: MysqlLinks, address: ServerAddress): Promise<ServerFacts> {
  const refused = unverifiable(address);
  if (refused !== null) throw refused;
  const facts = await links.asAdmin(serverFacts).catch((error) => {
    throw whyNotReached(error, 'server of MySQL', { address, codes: REFUSALS });
  });
  const problem = unmetNeed(facts, address);
  if (problem !== null) throw problem;
  return facts;
}
