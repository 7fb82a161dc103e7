/** How mariadb and mariadb-dump are called. */
import { type ClientCommand, type ClientPrograms, SOCKET_LINK } from '../managed-server/client-programs.ts';
import type { MysqlPrograms } from './mysql-programs.ts';
import { SOCKET } from './mysql-server.ts';

export interface ClientWork {
  readonly program: 'client' | 'dump';
  readonly args: readonly string[];
  readonly user: string;
  readonly password: string;
}

export type MysqlClients = ClientPrograms<ClientWork>;

export function clientCommand(programs: MysqlPrograms, work: ClientWork): ClientCommand {
  const { env, readOnly, [work.program]: command } = programs;
  const words = ['--no-defaults', `--socket=${SOCKET_LINK}/${SOCKET}`, `--user=${work.user}`];
  return {
    command,
    args: [...words, '--default-character-set=utf8mb4', ...work.args],
    env: { ...env, MYSQL_PWD: work.password },
    readOnly,
    files: {},
  };
}
