/** A PostgreSQL that we look after: made, started and stopped by us, on a socket and on loopback. */
import { join } from 'node:path';
import { DumpsMissing, type Readiness } from '../../databases/engine.ts';
import type { AppError } from '../../platform/errors.ts';
import { ClientPrograms } from '../managed-server/client-programs.ts';
import { firstSecret, forgetFirstSecret } from '../managed-server/data-template.ts';
import { ManagedServer } from '../managed-server/managed-server.ts';
import { endpointOf, innerPort, programsOrThrow, readinessOf } from '../managed-server/server-engine.ts';
import { readServerSecret, rolePassword } from '../managed-server/server-secret.ts';
import type { NoPrograms } from '../managed-server/unpacked-programs.ts';
import { scramVerifier } from '../scram-keys.ts';
import { type ClientWork, clientCommand } from './client-commands.ts';
import { dataMajor, takeAnalysis, upgradeData } from './data-directory.ts';
import { PostgresqlLinks, UNCOUNTED } from './postgresql-links.ts';
import {
  findPrograms,
  missingOf,
  newestPrograms,
  type PostgresqlPrograms,
  trustedExtensions,
} from './postgresql-programs.ts';
import { noteShutOut, PostgresqlServer, socketFolder } from './postgresql-server.ts';
import { ADMIN, analyse, DUMPER, databases, setPassword, setUpServer } from './postgresql-store.ts';
import type { PostgresqlOptions, PostgresqlSite } from './site.ts';

const WRONG_PASSWORD = '28P01';

/** `begin`: what is to be done each time it is up. */
export function ownSite(options: PostgresqlOptions, begin: () => Promise<void>): PostgresqlSite {
  const { folder, processes, uidBase, alarms, warn, tls = null, firstPort, find = findPrograms } = options;
  const { account = null } = options;
  const uid = account === null ? uidBase : account.uid;
  const found = () => find(dataMajor(server.places));
  const programs = async () => programsOrThrow('PostgreSQL', await found());
  const socket = () => ({ folder: socketFolder(server.places), port: server.port ?? 0 });
  let secret: Buffer | null = null;
  const links = new PostgresqlLinks({
    administrator: { user: ADMIN, database: 'postgres', password: () => links.passwordOf(ADMIN) },
    place: { socket },
    secret: () => {
      secret ??= readServerSecret(server.places);
      return secret;
    },
    isUp: () => server.isUp,
  });
  const greet = async () => {
    await takeAdministration(server.places, links);
    const verifier = await scramVerifier(links.passwordOf(DUMPER));
    await links.asAdmin((client) => setUpServer(client, verifier));
    await begin();
    if (takeAnalysis(server.places)) void analyseAll(links, warn);
  };
  // Over a new connection: those that there are go on without the process that takes new ones.
  const probe = () => links.inDatabase('postgres', (client) => client.query('SELECT 1'));
  const passwordOf = (role: string) => links.passwordOf(role);
  const how = { processes, uid, firstPort: innerPort(firstPort), tls, template: account?.template ?? null };
  const kind = new PostgresqlServer({ ...how, programs, passwordOf, greet, probe });
  const server = new ManagedServer({
    kind,
    processes,
    uid,
    folder: account === null ? join(folder, 'server') : folder,
    alarms,
    warn,
    onEnd: account?.onEnd ?? (() => {}),
  });
  const shared = { processes, uids: uidBase === null ? null : uidBase + 1, folder: join(folder, 'clients') };
  const programsOfClients = account?.clients ?? new ClientPrograms({ ...shared, name: kind.name });
  const clients = programsOfClients.of({
    accountId: account?.accountId ?? null,
    socket: () => socket().folder,
    command: async (work: ClientWork) => clientCommand(withClients(await programs()), socket(), work),
  });
  return {
    server,
    links,
    clients,
    guest: () => null,
    shutOut: (database, isOut) => noteShutOut(server.places, database, isOut),
    endpoint: () => endpointOf(account?.port ?? server.port, tls),
    readiness: async () => readinessOfPrograms(await found(), server.problem),
    upgrade: async () => {
      const made = dataMajor(server.places);
      const to = await newestPrograms();
      if (made === null || to === null || to.major <= made) return null;
      const from = withClients(await programs());
      // What a crash left is put in order by the server that made it.
      await server.up();
      await links.close();
      await server.close();
      const places = { ...server.places, seen: await processes.pathOf(server.places.home) };
      await upgradeData({ processes, uid, places, passwordOf }, { from, to });
      return { from: from.version, to: to.version };
    },
  };
}

/** Of servers of ours, by the programs that were found and why the last start of one failed. */
export function readinessOfPrograms(
  programs: PostgresqlPrograms | NoPrograms,
  problem: AppError | null = null,
): Readiness {
  if (!('bin' in programs)) return Object.assign(readinessOf(programs, problem), { extensions: [] });
  const extensions = trustedExtensions(programs.bin, programs.major);
  return Object.assign(readinessOf(programs, problem, missingOf(programs)), { extensions });
}

/** Gives the administrator of data that were copied a password of this server's own. */
async function takeAdministration(places: ManagedServer['places'], links: PostgresqlLinks): Promise<void> {
  const first = firstSecret(places);
  if (first === null) return;
  const verifier = await scramVerifier(links.passwordOf(ADMIN));
  const password = rolePassword(first, ADMIN);
  const who = { user: ADMIN, password, database: 'postgres', options: UNCOUNTED };
  try {
    await links.as(who, (client) => setPassword(client, ADMIN, verifier));
  } catch (error) {
    // It was given one before.
    if ((error as { code?: unknown }).code !== WRONG_PASSWORD) throw error;
  }
  forgetFirstSecret(places);
}

/** Throws DumpsMissing where they are a server alone. */
function withClients(programs: PostgresqlPrograms): PostgresqlPrograms {
  const missing = missingOf(programs);
  if (missing !== null) throw new DumpsMissing(missing.reason, missing.fix);
  return programs;
}

/** An upgrade leaves statistics behind, without which large tables are searched badly. */
async function analyseAll(links: PostgresqlLinks, warn: (text: string) => void): Promise<void> {
  for (const name of await links.asAdmin((client) => databases(client, null)))
    await links.inDatabase(name, analyse).catch(() => warn(`run ANALYZE in the database ${name}`));
}
