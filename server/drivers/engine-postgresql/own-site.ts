/** A PostgreSQL that we look after: made, started and stopped by us, on a socket and on loopback. */
import { join } from 'node:path';
import { DumpsMissing } from '../../databases/engine.ts';
import { ClientPrograms } from '../managed-server/client-programs.ts';
import { ManagedServer } from '../managed-server/managed-server.ts';
import { endpointOf, programsOrThrow, readinessOf } from '../managed-server/server-engine.ts';
import { readServerSecret } from '../managed-server/server-secret.ts';
import { type ClientWork, clientCommand } from './client-commands.ts';
import { dataMajor, takeAnalysis, upgradeData } from './data-directory.ts';
import { PostgresqlLinks } from './postgresql-links.ts';
import {
  findPrograms,
  missingOf,
  newestPrograms,
  type PostgresqlPrograms,
  trustedExtensions,
} from './postgresql-programs.ts';
import { PostgresqlServer, socketFolder } from './postgresql-server.ts';
import { ADMIN, analyse, DUMPER, databases, setUpServer } from './postgresql-store.ts';
import { scramVerifier } from './scram-verifier.ts';
import type { PostgresqlOptions, PostgresqlSite } from './site.ts';

/** `begin`: what is to be done each time it is up. */
export function ownSite(options: PostgresqlOptions, begin: () => Promise<void>): PostgresqlSite {
  const { folder, processes, uidBase, alarms, warn, tls = null, firstPort, find = findPrograms } = options;
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
    const verifier = await scramVerifier(links.passwordOf(DUMPER));
    await links.asAdmin((client) => setUpServer(client, verifier));
    await begin();
    if (takeAnalysis(server.places)) void analyseAll(links, warn);
  };
  // Over a new connection: those that there are go on without the process that takes new ones.
  const probe = () => links.inDatabase('postgres', (client) => client.query('SELECT 1'));
  const passwordOf = (role: string) => links.passwordOf(role);
  const how = { processes, uid: uidBase, firstPort, tls };
  const kind = new PostgresqlServer({ ...how, programs, passwordOf, greet, probe });
  const atServer = join(folder, 'server');
  const server = new ManagedServer({ kind, processes, uid: uidBase, folder: atServer, alarms, warn });
  const clients = new ClientPrograms({
    processes,
    uids: uidBase === null ? null : uidBase + 1,
    folder: join(folder, 'clients'),
    name: kind.name,
    socket: () => socket().folder,
    command: async (work: ClientWork) => clientCommand(withClients(await programs()), socket(), work),
  });
  return {
    server,
    links,
    clients,
    guest: () => null,
    endpoint: () => endpointOf(server.port, tls),
    readiness: async () => {
      const programs = await found();
      if (!('bin' in programs))
        return Object.assign(readinessOf(programs, server.problem), { extensions: [] });
      const extensions = trustedExtensions(programs.bin, programs.major);
      return Object.assign(readinessOf(programs, server.problem, missingOf(programs)), { extensions });
    },
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
      await upgradeData({ processes, uid: uidBase, places, passwordOf }, { from, to });
      return { from: from.version, to: to.version };
    },
  };
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
