/** A MariaDB that we look after: made, started and stopped by us, on a socket and on loopback. */
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import type { Readiness } from '../../databases/engine.ts';
import type { AppError } from '../../platform/errors.ts';
import { ClientPrograms } from '../managed-server/client-programs.ts';
import { firstSecret, forgetFirstSecret } from '../managed-server/data-template.ts';
import { ManagedServer } from '../managed-server/managed-server.ts';
import { dataSeries } from '../managed-server/server-data.ts';
import {
  endpointOf,
  innerPort,
  type ManagedEngineOptions,
  programsOrThrow,
  readinessOf,
} from '../managed-server/server-engine.ts';
import { readServerSecret, rolePassword } from '../managed-server/server-secret.ts';
import type { NoPrograms } from '../managed-server/unpacked-programs.ts';
import { type ClientWork, clientCommand } from './client-commands.ts';
import { MysqlLinks } from './mysql-links.ts';
import { findPrograms, type MysqlPrograms } from './mysql-programs.ts';
import { databaseFolder, MysqlServer, socketFolder } from './mysql-server.ts';
import { ADMIN, DUMPER } from './mysql-store.ts';
import { OWN_WAYS } from './server-ways.ts';
import type { MysqlSite } from './site.ts';

const WRONG_PASSWORD = 1045;

/** `begin`: what is to be done each time it is up. */
export function ownSite(options: ManagedEngineOptions, begin: () => Promise<void>): MysqlSite {
  const { folder, processes, uidBase, alarms, warn, tls = null, firstPort, account = null } = options;
  const uid = account === null ? uidBase : account.uid;
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
  const greet = async () => {
    await takeAdministration(server.places, links);
    await begin();
  };
  const how = { processes, uid, firstPort: innerPort(firstPort), tls, template: account?.template ?? null };
  const kind = new MysqlServer({ ...how, programs, passwordOf, greet, probe });
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
    command: async (work: ClientWork) => clientCommand(await programs(), null, work),
  });
  return {
    server,
    links,
    clients,
    dumper: () => ({ user: DUMPER, password: links.passwordOf(DUMPER) }),
    fileBytes: (_admin, database) => bytesIn(databaseFolder(server.places, database)),
    endpoint: () => endpointOf(account?.port ?? server.port, tls),
    readiness: async () => readinessOfPrograms(await found(), server.problem),
  };
}

/** Of servers of ours, by the programs that were found and why the last start of one failed. */
export function readinessOfPrograms(
  programs: MysqlPrograms | NoPrograms,
  problem: AppError | null = null,
): Readiness {
  // As the server itself says it: no MySQL has this number.
  const named = 'version' in programs ? { version: `${programs.version}-MariaDB` } : programs;
  return readinessOf(named, problem);
}

/** Gives the administrator of data that were copied a password of this server's own. */
async function takeAdministration(places: ManagedServer['places'], links: MysqlLinks): Promise<void> {
  const first = firstSecret(places);
  if (first === null) return;
  const who = { user: ADMIN, database: 'mysql', password: rolePassword(first, ADMIN) };
  const change = `ALTER USER ${ADMIN}@localhost ${OWN_WAYS.identified(links.passwordOf(ADMIN))}`;
  try {
    await links.as(who, async (driver) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      driver.query(change, (error) => (error ? reject(error) : resolve()));
      await promise;
    });
  } catch (error) {
    // It was given one before.
    if ((error as { errno?: unknown }).errno !== WRONG_PASSWORD) throw error;
  }
  forgetFirstSecret(places);
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
