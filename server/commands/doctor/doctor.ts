/** `cloudlet doctor`: what works on this machine, what does not, and the command that fixes it. */
import type { Config } from '../../config/config.ts';
import { UIDS } from '../../drivers/qemu/guests/guest-folders.ts';
import { type Clock, systemClock } from '../../platform/clock.ts';
import type { Finding } from '../../platform/finding.ts';
import { whyNoOtherUsers } from '../../platform/host/other-users.ts';
import { type Command, UsageError } from '../command.ts';
import { checkBlobs } from './doctor-blobs.ts';
import {
  checkClock,
  checkDataDirectory,
  checkDescriptors,
  checkExposure,
  checkPorts,
  checkRegistration,
  checkRuntime,
  existingDirectory,
} from './doctor-host.ts';
import { checkLeftovers } from './doctor-leftovers.ts';
import { checkGuestLimits, checkKvm, checkMemory, checkPromises, checkTinyImage } from './doctor-machines.ts';
import { checkMetadata } from './doctor-metadata.ts';
import { checkPublishedPorts, checkVmAddresses, checkVmNetwork } from './doctor-network.ts';
import { checkEngines, checkFilter, checkQemu } from './doctor-programs.ts';
import { checkRecovery } from './doctor-recovery.ts';

const HELP = `Usage: cloudlet doctor [--port PORT]

Checks what Cloudlet needs on this machine and suggests a fix for each problem.

  --port PORT       port of the API; default: CLOUDLET_PORT, or 8080
`;

export const DOCTOR: Command = {
  help: HELP,
  options: ['port'],
  run: async (config, { positionals }) => {
    if (positionals.length > 0) throw new UsageError('doctor takes no arguments; see cloudlet doctor --help');
    return runDoctor({ config, print: (line) => console.log(line) });
  },
};

interface DoctorDeps {
  readonly config: Config;
  /** Prints one line, without its line end. */
  readonly print: (line: string) => void;
  readonly clock?: Clock;
}

/**
 * Checks everything and prints a line for each, whether Cloudlet runs or not; changes nothing.
 * Resolves with the exit code: 1 if a check failed, else 0.
 */
export async function runDoctor({ config, print, clock = systemClock }: DoctorDeps): Promise<number> {
  const users = { first: config.vmUidBase, count: UIDS.count };
  const noUsers = whyNoOtherUsers(users, await existingDirectory(config.dataDir));
  const groups = await Promise.all([
    checkRuntime(),
    checkDataDirectory(config),
    checkMetadata(config, clock),
    checkBlobs(config, clock),
    checkPorts(config),
    checkExposure(config),
    checkRegistration(config),
    checkClock(clock),
    checkDescriptors(config),
    checkQemu(),
    checkFilter(),
    checkKvm(config, noUsers !== null),
    checkVmNetwork(config, noUsers),
    checkVmAddresses(config),
    checkLeftovers(config),
    checkPublishedPorts(config),
    checkTinyImage(),
    checkMemory(),
    checkPromises(),
    checkGuestLimits(),
    checkEngines(config),
    checkRecovery(config),
  ]);
  const findings = groups.flat();
  for (const finding of findings) print(renderFinding(finding));
  const failed = findings.filter(({ level }) => level === 'fail').length;
  const warned = findings.filter(({ level }) => level === 'warn').length;
  print(
    `${failed} failed, ${warned} ${warned === 1 ? 'warning' : 'warnings'}, ${findings.length - failed - warned} ok`,
  );
  return failed === 0 ? 0 : 1;
}

function renderFinding({ level, subject, detail, fix }: Finding): string {
  const line = `${level.padEnd(4)}  ${subject.padEnd(16)} ${detail}`;
  return fix === undefined ? line : `${line}. Fix: ${fix}`;
}
