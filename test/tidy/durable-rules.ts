/** Small files written by the server are complete after a loss of power, or do not need to be. */
import { type Finding, findAll, isTest, type SourceFile } from './source-files.ts';

const WRITES = /\bimport \{[^}]*\bwriteFile(?:Sync)?\b[^}]*\} from 'node:fs|\bfs\.writeFile(?:Sync)?\(/g;

/** Files of `server/` that write others directly, and why those need not be durable. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'server/platform/files.ts': 'makes them durable',
  'server/http/control-server.ts': 'made anew at each start',
  'server/drivers/directory-lock.ts': 'empty',
  'server/drivers/host-process/process-identity.ts': 'the kernel',
  'server/drivers/host-process/processor-order.ts': 'the kernel',
  'server/drivers/host-process/cgroups.ts': 'the kernel',
  'server/drivers/host-network/kernel-settings.ts': 'the kernel',
  'server/drivers/engines/postgresql/server/data-directory.ts': 'made anew at each start of the server',
  'server/drivers/managed-server/links/server-tls.ts': 'made anew at each start of the server',
  'server/drivers/managed-server/programs/client-programs.ts': 'for one run of a program',
  'server/drivers/managed-server/accounts/tenant-logs.ts': 'a log',
  'server/drivers/engine-children/child-code.ts': 'made anew at each start',
  'server/drivers/engine-children/tenant-folders.ts': 'empty; its folder is synced',
  'server/drivers/qemu/guests/guest-folders.ts': 'of runs, which a loss of power ends',
  'server/drivers/qemu/images/disk.ts': 'synced by guest-folders.ts, all of a guest together',
  'server/drivers/qemu/probe.ts': 'made anew after each start of the host',
  'server/drivers/recovery-directory/directory-target.ts': 'synced by its sync(), or by its caller',
};

export function checkDurableFiles(files: readonly SourceFile[]): Finding[] {
  const message =
    'write it with platform/files.ts, or say in test/tidy/durable-rules.ts why it need not be whole';
  const isExcepted = (path: string) => path in EXCEPTIONS;
  const unused = Object.keys(EXCEPTIONS).filter(
    (path) => !files.some((file) => file.path === path && findAll(file, WRITES, '').length > 0),
  );
  return [
    ...files
      .filter(({ path }) => path.startsWith('server/') && !isTest(path) && !isExcepted(path))
      .flatMap((file) => findAll(file, WRITES, message)),
    ...unused.map((path) => ({ path, line: 1, message: 'writes no file: take it off durable-rules.ts' })),
  ];
}
