/** A MariaDB that we look after: made, started and stopped by us, on a socket and on loopback. */
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import { ClientPrograms } from '../managed-server/client-programs.ts';
import { ManagedServer } from '../managed-server/managed-server.ts';
import { dataSeries } from '../managed-server/server-data.ts';
import {
  endpointOf,
  type ManagedEngineOptions,
  programsOrThrow,
  readinessOf,
} from '../managed-server/server-engine.ts';
import { readServerSecret } from '../managed-server/server-secret.ts';
import { type ClientWork, clientCommand } from './client-commands.ts';
import { MysqlLinks } from './mysql-links.ts';
import { findPrograms } from './mysql-programs.ts';
import { databaseFolder, MysqlServer, socketFolder } from './mysql-server.ts';
import { ADMIN, DUMPER } from './mysql-store.ts';
import { OWN_WAYS } from './server-ways.ts';
import type { MysqlSite } from './site.ts';

/** `begin`: what is to be done each time it is up. */
export function ownSite(options: ManagedEngineOptions, begin: () => Promise<void>): MysqlSite {
  const { folder, processes, uidBase, alarms, warn, tls = null, firstPort } = options;
  const found = () => findPrograms(dataSeries(server.places));
  const programs = async () => programsOrThrow('MariaDB', await found());
  const socket = () => ({ folder: socketFolder(server.places), port: server.port ?? 0 });
  let secret: Buffer | null = null;
  const links = new MysqlLinks({
    administrator: { user: ADMIN, database: 'mysql', password: () => links.passwordOf(ADMIN) },
    place: { socket },
    secret: () => {
      secret ??= readServerSecret(server.places);
      return secret;
    },
    isUp: () => server.isUp,
    ways: () => OWN_WAYS,
  });
  const probe = () => links.asAdmin((admin) => admin.query('SELECT 1'));
  const passwordOf = (role: string) => links.passwordOf(role);
  const how = { processes, uid: uidBase, firstPort, tls, template: null };
  const kind = new MysqlServer({ ...how, programs, passwordOf, greet: begin, probe });
  const atServer = join(folder, 'server');
  const server = new ManagedServer({ kind, processes, uid: uidBase, folder: atServer, alarms, warn });
  const clients = new ClientPrograms({
    processes,
    uids: uidBase === null ? null : uidBase + 1,
    folder: join(folder, 'clients'),
    name: kind.name,
    socket: () => socket().folder,
    command: async (work: ClientWork) => clientCommand(await programs(), null, work),
  });
  return {
    server,
    links,
    clients,
    dumper: () => ({ user: DUMPER, password: links.passwordOf(DUMPER) }),
    fileBytes: (_admin, database) => bytesIn(databaseFolder(server.places, database)),
    endpoint: () => endpointOf(server.port, tls),
    readiness: async () => {
      const programs = await found();
      // As the server itself says it: no MySQL has this number.
      const named = 'version' in programs ? { version: `${programs.version}-MariaDB` } : programs;
      return readinessOf(named, server.problem);
    },
  };
}

/** The size of the files themselves, whatever MariaDB's own figures say. */
async function bytesIn(folder: string): Promise<number> {
  const names = await fs.readdir(folder).catch(() => []);
  const sizes = names.map((name) =>
    fs.lstat(join(folder, name)).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
