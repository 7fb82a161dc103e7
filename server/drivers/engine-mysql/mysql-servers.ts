/** MariaDB with a server for each account. */
import { join } from 'node:path';
import { hostDiskFull } from '../../platform/errors.ts';
import { AccountAlarms } from '../managed-server/account-alarms.ts';
import {
  AccountServers,
  type AccountServersDeps,
  type AccountServersKind,
} from '../managed-server/account-servers.ts';
import { ClientPrograms } from '../managed-server/client-programs.ts';
import { DataTemplate } from '../managed-server/data-template.ts';
import type { ManagedEngineOptions } from '../managed-server/server-engine.ts';
import { SharedServer } from '../managed-server/shared-server.ts';
import { DUMP_FORMATS } from './dumps.ts';
import { MysqlEngine } from './mysql-engine.ts';
import { findPrograms } from './mysql-programs.ts';
import { DATA } from './mysql-server.ts';
import { readinessOfPrograms } from './own-site.ts';

export interface AccountMysqlOptions extends Omit<ManagedEngineOptions, 'account' | 'external'> {
  readonly servers: Omit<AccountServersDeps, 'folder' | 'addresses'>;
  /** The user of the server of an account; null: ours. */
  readonly uidOf: (accountId: number) => number | null;
}

/** ER_SERVER_SHUTDOWN. */
const NOT_NOW = 1053;

export function mysqlServers(options: AccountMysqlOptions): AccountServers<MysqlEngine> {
  const { servers, uidOf, ...shared } = options;
  const { folder, processes, uidBase, firstPort, tls = null, isDiskLow } = shared;
  const template = new DataTemplate({
    folder: join(folder, 'template'),
    processes,
    uid: uidBase,
    data: DATA,
  });
  const alarms = new AccountAlarms(shared.alarms);
  const uids = uidBase === null ? null : uidBase + 1;
  const clients = new ClientPrograms({ processes, uids, folder: join(folder, 'clients'), name: 'mysql' });
  const kind = {
    name: 'mysql',
    dumpFormats: DUMP_FORMATS,
    firstPort,
    alarms,
    make: ({ accountId, folder, port, onEnd }) => {
      const account = { accountId, port, onEnd, uid: uidOf(accountId), template, clients };
      return new MysqlEngine({ ...shared, folder, account, alarms: alarms.of(accountId) });
    },
    readiness: async () => readinessOfPrograms(await findPrograms(null)),
    assertRoom: () => {
      if (isDiskLow()) throw hostDiskFull();
    },
    refusal,
    shared: new SharedServer({
      folder,
      title: 'MariaDB',
      make: () => new MysqlEngine(shared),
      alarms: shared.alarms,
      warn: shared.warn,
    }),
  } as const satisfies AccountServersKind<MysqlEngine>;
  return new AccountServers(kind, { ...servers, folder, addresses: tls?.listen ?? ['127.0.0.1'] });
}

/** An ERR_Packet in the place of the greeting (MySQL, client/server protocol). */
function refusal(text: string): Buffer {
  const body = Buffer.concat([Buffer.from([0xff, NOT_NOW & 0xff, NOT_NOW >> 8]), Buffer.from(text)]);
  const head = Buffer.alloc(4);
  head.writeUIntLE(body.length, 0, 3);
  return Buffer.concat([head, body]);
}
