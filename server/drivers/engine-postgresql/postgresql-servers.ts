/** PostgreSQL with a server for each account. */
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
import { SharedServer } from '../managed-server/shared-server.ts';
import { DATA } from './data-directory.ts';
import { DUMP_FORMATS } from './dumps.ts';
import { readinessOfPrograms } from './own-site.ts';
import { PostgresqlEngine } from './postgresql-engine.ts';
import { findPrograms } from './postgresql-programs.ts';
import type { PostgresqlOptions } from './site.ts';

export interface AccountPostgresqlOptions extends Omit<PostgresqlOptions, 'account' | 'external'> {
  readonly servers: Omit<AccountServersDeps, 'folder' | 'addresses'>;
  /** The user of the server of an account; null: ours. */
  readonly uidOf: (accountId: number) => number | null;
}

/** `cannot_connect_now`. */
const NOT_NOW = '57P03';

export function postgresqlServers(options: AccountPostgresqlOptions): AccountServers<PostgresqlEngine> {
  const { servers, uidOf, ...shared } = options;
  const { folder, processes, uidBase, firstPort, tls = null, isDiskLow, find = findPrograms } = shared;
  const template = new DataTemplate({
    folder: join(folder, 'template'),
    processes,
    uid: uidBase,
    data: DATA,
  });
  const alarms = new AccountAlarms(shared.alarms);
  const uids = uidBase === null ? null : uidBase + 1;
  const clients = new ClientPrograms({
    processes,
    uids,
    folder: join(folder, 'clients'),
    name: 'postgresql',
  });
  const kind = {
    name: 'postgresql',
    dumpFormats: DUMP_FORMATS,
    firstPort,
    alarms,
    make: ({ accountId, folder, port, onEnd }) => {
      const account = { accountId, port, onEnd, uid: uidOf(accountId), template, clients };
      return new PostgresqlEngine({ ...shared, folder, account, alarms: alarms.of(accountId) });
    },
    readiness: async () => readinessOfPrograms(await find(null)),
    assertRoom: () => {
      if (isDiskLow()) throw hostDiskFull();
    },
    refusal,
    shared: new SharedServer({
      folder,
      title: 'PostgreSQL',
      make: () => new PostgresqlEngine(shared),
      alarms: shared.alarms,
      warn: shared.warn,
    }),
  } as const satisfies AccountServersKind<PostgresqlEngine>;
  return new AccountServers(kind, { ...servers, folder, addresses: tls?.listen ?? ['127.0.0.1'] });
}

/** An ErrorResponse (PostgreSQL's protocol 3.0, message formats). */
function refusal(text: string): Buffer {
  const fields = ['SFATAL', 'VFATAL', `C${NOT_NOW}`, `M${text}`, ''];
  const body = Buffer.from(`${fields.join('\0')}\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
