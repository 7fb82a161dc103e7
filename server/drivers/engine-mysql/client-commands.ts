/** How mariadb and mariadb-dump are called. */
import { type ClientCommand, type Clients, SOCKET_LINK } from '../managed-server/client-programs.ts';
import type { RemotePlace } from '../managed-server/external-place.ts';
import type { MysqlClientPrograms } from './mysql-programs.ts';
import { SOCKET } from './mysql-server.ts';

export interface ClientWork {
  readonly program: 'client' | 'dump';
  readonly args: readonly string[];
  readonly user: string;
  readonly password: string;
}

export type MysqlClients = Clients<ClientWork>;

const CA_FILE = 'ca.pem';

/** `at`: null: by the server's socket. */
export function clientCommand(
  programs: MysqlClientPrograms,
  at: RemotePlace | null,
  work: ClientWork,
): ClientCommand {
  const { env, readOnly, [work.program]: command } = programs;
  const place = at === null ? [`--socket=${SOCKET_LINK}/${SOCKET}`] : remoteWords(at, programs);
  return {
    command,
    args: ['--no-defaults', ...place, `--user=${work.user}`, '--default-character-set=utf8mb4', ...work.args],
    env: { ...env, MYSQL_PWD: work.password },
    readOnly,
    files: at?.ca ? { [CA_FILE]: at.ca } : {},
  };
}

function remoteWords({ host, port, ca }: RemotePlace, { plugins }: MysqlClientPrograms): string[] {
  const tls = ca === null ? ['--skip-ssl'] : [`--ssl-ca=${CA_FILE}`, '--ssl-verify-server-cert'];
  // The ways to log in to a MySQL, which MariaDB's clients have beside them.
  const ways = plugins === null ? [] : [`--plugin-dir=${plugins}`];
  return ['--protocol=tcp', `--host=${host}`, `--port=${port}`, ...tls, ...ways];
}
