/** The part of `cloudlet doctor` that looks for programs: the hypervisor and the database engines. */
import type { Config } from '../../config/config.ts';
import { ABOUT_ENGINES } from '../../drivers/engines/all-engines.ts';
import { findFilter } from '../../drivers/host-process/system-calls.ts';
import { QemuPrograms } from '../../drivers/qemu/program.ts';
import type { Finding } from '../../platform/finding.ts';

export async function checkQemu(): Promise<Finding[]> {
  const subject = 'QEMU';
  const found = await new QemuPrograms().detect();
  if ('path' in found) return [{ level: 'ok', subject, detail: `${found.version}, ${found.path}` }];
  return [
    { level: 'warn', subject, detail: `${found.problem}: virtual machines cannot start`, fix: found.fix },
  ];
}

/** Whether programs that process untrusted data run under a system call filter. */
export async function checkFilter(): Promise<Finding> {
  const subject = 'system calls';
  const { problem } = await findFilter();
  if (problem === '')
    return { level: 'ok', subject, detail: 'the system calls of database programs are filtered' };
  const fix = 'install Perl (apt-get install perl-base), and use a kernel with seccomp filters';
  return { level: 'warn', subject, detail: problem, fix };
}

/** Each missing engine makes its own kind unavailable. */
export async function checkEngines(config: Config): Promise<Finding[]> {
  return (await Promise.all(ABOUT_ENGINES.map(({ doctor }) => doctor(config)))).flat();
}
