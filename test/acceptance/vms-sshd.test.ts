/** Machines on a host with an SSH server that listens at every address, as on most servers. */
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { type CloudOptions, CloudProcess, NO_OTHER_READERS } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import * as net from './private-network.ts';
import { cannotRunGuests, firstLine, newVm, removeAll, sshBanner } from './vms-kit.ts';

const run = promisify(execFile);
const skip = cannotRunGuests() || notInstalled('sshd', 'ssh', 'ssh-keygen') || net.cannotMakeNetworks();
const NOBODY = 65_534;
/** Text that the host's server adds to its banner. */
const MARK = 'of-the-host';
const SSHD = `mount -t tmpfs none /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f /dev/null \
-h "$0" -o ListenAddress=0.0.0.0:22 -o PidFile=none -o VersionAddendum=${MARK}`;

interface Machine {
  readonly ip_address: string;
  readonly ssh_command: string;
  readonly ports: readonly {
    readonly port: number;
    readonly open: boolean;
    readonly reason: string | null;
  }[];
}

if (net.isInside())
  describe('beside an SSH server at every address', () => {
    const directory = mkdtempSync(join(tmpdir(), 'cloudlet-sshd-'));
    const keyFile = join(directory, 'key');
    let stopServer = () => {};
    before(async () => {
      spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', keyFile]);
      const server = spawn('unshare', ['--mount', 'sh', '-c', SSHD, keyFile], { stdio: 'ignore' });
      stopServer = () => void server.kill('SIGKILL');
      await eventually('the server of the host', () => isHost('127.0.0.1'));
    });
    after(() => {
      stopServer();
      rmSync(directory, { recursive: true });
    });

    const isHost = async (address: string) => (await firstLine(address, 22))?.endsWith(MARK) === true;

    /** A running machine of a separate cloud whose SSH server answers. */
    async function machineOf(t: TestContext, options: CloudOptions): Promise<Machine> {
      const cloud = await CloudProcess.start(options);
      const anyone = await CheckedClient.open(cloud.api);
      const user = anyone.as((await anyone.register()).api_key);
      t.after(async () => {
        await removeAll(user);
        await cloud.stop();
      });
      const ssh_keys = [readFileSync(`${keyFile}.pub`, 'utf8').trim()];
      const vm = await newVm(user, { name: 'the-machine', ssh_keys });
      const started = await user.expect(200, `${vm}/start`, { method: 'POST' });
      await sshBanner(started.ip_address);
      return started;
    }

    /** The output of `hostname` through the command in the answer. */
    async function hostnameBy({ ssh_command }: Machine): Promise<string> {
      const [program = '', ...words] = ssh_command.split(' ');
      const fixed = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'ConnectTimeout=60'];
      const options = fixed.flatMap((option) => ['-o', option]);
      return (await run(program, [...options, '-i', keyFile, ...words, 'hostname'])).stdout.trim();
    }

    test('as root with nftables port 22 of a machine is the machine', async (t) => {
      const machine = await machineOf(t, {});
      assert.equal(machine.ssh_command, `ssh root@${machine.ip_address}`);
      assert.match((await firstLine(machine.ip_address, 22)) ?? '', /^SSH-2\.0-dropbear/);
      assert.equal(await hostnameBy(machine), 'the-machine');
      assert.equal(await isHost('127.0.0.1'), true, 'others still reach the host');
    });

    /**
     * Users that cannot lead connections past the host's server, and why port 22 is then not the machine's.
     */
    const others: readonly (readonly [name: string, wrapper: readonly string[], reason: RegExp])[] = [
      [
        'as root without nftables',
        ['unshare', '--mount', 'sh', '-c', 'mount --bind /dev/null /usr/sbin/nft && exec "$0" "$@"'],
        /^another program of this host listens on this port/,
      ],
      [
        'as an ordinary user',
        ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--inh-caps=-all'],
        /^ports below 1024 need root.*responses on this port are not from the machine$/,
      ],
    ];
    for (const [name, wrapper, reason] of others)
      test(`${name} the answer says that port 22 is not the machine, and which port is`, {
        skip: name.endsWith('user') && NO_OTHER_READERS,
      }, async (t) => {
        const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-beside-'));
        t.after(() => rmSync(dataDir, { recursive: true, force: true }));
        if (name.endsWith('user')) chownSync(dataDir, NOBODY, NOBODY);
        chmodSync(dataDir, 0o700);
        const machine = await machineOf(t, { dataDir, wrapper });
        const port = machine.ports.find((one) => one.port === 22);
        assert.equal(port?.open, false);
        assert.match(port?.reason ?? '', reason);
        assert.equal(await isHost(machine.ip_address), true, 'that is who answers there');
        assert.equal(machine.ssh_command, `ssh -p 2222 root@${machine.ip_address}`);
        assert.equal(await hostnameBy(machine), 'the-machine');
      });
  });
else {
  test("a machine's SSH is never taken for that of the host", { skip }, () => {
    const { status, output } = net.runInside(import.meta.filename);
    assert.equal(status, 0, output);
  });
}
