/** A PostgreSQL that we look after: made, started and stopped by us, on a socket and on loopback. */
import { join } from 'node:path';
import { ClientPrograms } from '../managed-server/client-programs.ts';
import {
  endpointOf,
  type ManagedEngineOptions,
  programsOrThrow,
  readinessOf,
} from '../managed-server/managed-engine.ts';
import { ManagedServer } from '../managed-server/managed-server.ts';
import { readServerSecret } from '../managed-server/server-secret.ts';
import { type ClientWork, clientCommand } from './client-commands.ts';
import { PostgresqlLinks } from './postgresql-links.ts';
import { findPrograms } from './postgresql-programs.ts';
import { dataMajor, PostgresqlServer, socketFolder } from './postgresql-server.ts';
import { ADMIN, DUMPER, setUpServer } from './postgresql-store.ts';
import { scramVerifier } from './scram-verifier.ts';
import type { PostgresqlSite } from './site.ts';

const PORT = 25_432;

/** `begin`: what is to be done each time it is up. */
export function ownSite(options: ManagedEngineOptions, begin: () => Promise<void>): PostgresqlSite {
  const { folder, processes, uidBase, alarms, notice, tls = null, firstPort = PORT } = options;
  const found = () => findPrograms(dataMajor(server.places));
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
  };
  const passwordOf = (role: string) => links.passwordOf(role);
  const how = { processes, uid: uidBase, firstPort, tls };
  const kind = new PostgresqlServer({ ...how, programs, passwordOf, greet });
  const atServer = join(folder, 'server');
  const server = new ManagedServer({ kind, processes, uid: uidBase, folder: atServer, alarms, notice });
  const clients = new ClientPrograms({
    processes,
    uids: uidBase === null ? null : uidBase + 1,
    folder: join(folder, 'clients'),
    name: kind.name,
    socket: () => socket().folder,
    command: async (work: ClientWork) => clientCommand(await programs(), socket(), work),
  });
  return {
    server,
    links,
    clients,
    guest: () => null,
    endpoint: () => endpointOf(server.port, tls),
    readiness: async () => readinessOf(await found(), server.problem),
  };
}
