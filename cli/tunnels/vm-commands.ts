/** Remote access to machines: SSH, copies, ports, consoles. */
import type { Cloud, Vm } from '../../sdk/index.ts';
import type { Command, Invocation } from '../command.ts';
import { findVm } from '../commands/resource-commands.ts';
import { UsageError } from '../failures.ts';
import { cleaned } from '../output.ts';
import { readTextFile } from '../text-file.ts';
import { showConsole } from './console.ts';
import { listen, portPair, untilInterrupted } from './forward.ts';
import { lendOwnKey, ownPublicKey, runSsh, sftpOption, sshSettings, userPublicKeys } from './ssh.ts';
import { join, openSocket } from './tunnel.ts';

const MAX_LOG_BYTES = 2 ** 20;
const LOG_BYTES = 64 * 1024;
/** The exit code of ssh if ssh itself failed, not the command on the machine. */
const SSH_FAILED = 255;
const REFUSED =
  'If permission was denied: temporary keys work with the image "tiny" and with images that have OpenSSH and ' +
  'cloud-init. Restart machines that were created before this version. Otherwise, add your key in the console ' +
  '(cloudlet vm console).';

const theVm = async (call: Invocation): Promise<{ readonly cloud: Cloud; readonly vm: Vm }> => {
  const { cloud } = call.session();
  return { cloud, vm: await findVm(cloud, call.words[0] ?? '') };
};

function tunnelTo({ session }: Invocation, { vm_id }: Vm, port: number) {
  return () => openSocket(session(), session().cloud.urlOf('openVmTunnel', [vm_id], { port }));
}

/** `web-1:/srv/a` names a file of a machine; a colon after a slash does not. */
function machineIn(path: string): { readonly name: string; readonly path: string } | null {
  const match = /^([^/:]+):(.*)$/s.exec(path);
  return match === null ? null : { name: match[1] ?? '', path: match[2] ?? '' };
}

async function copy(call: Invocation) {
  const { cloud } = call.session();
  const machines = call.words.map(machineIn);
  const [name, ...others] = new Set(machines.flatMap((each) => each?.name ?? []));
  if (name === undefined || others.length > 0)
    throw new UsageError('exactly one machine must be named: VM:PATH as source or target');
  const vm = await findVm(cloud, name);
  const paths = call.words.map((path, at) => {
    const far = machines[at];
    // Without the dot, scp would treat a name with a colon as a host.
    return far ? `${vm.vm_id}:${far.path}` : path.startsWith('/') ? path : `./${path}`;
  });
  const recursive = call.options.has('recursive') ? ['-r'] : [];
  return runSsh('scp', await sshSettings(call.session(), vm), [
    ...sftpOption(),
    ...recursive,
    '--',
    ...paths,
  ]);
}

async function forward(call: Invocation) {
  const { vm } = await theVm(call);
  const pairs = call.words.slice(1).map(portPair);
  for (const { local, far } of pairs) {
    const { port } = await listen(local, tunnelTo(call, vm, far), call.output);
    const shown = { address: `127.0.0.1:${port}`, vm: vm.name, port: far };
    call.output.one(shown, () => [`127.0.0.1:${port} → ${vm.name}:${far}`]);
  }
  call.output.note('Press Ctrl+C to stop.');
  await untilInterrupted();
  process.exit(0);
}

async function sshConfig(call: Invocation) {
  const { vm } = await theVm(call);
  const settings = await sshSettings(call.session(), vm);
  // A name may be `*`, which matches every host in ssh; and the cloud must not choose which hosts
  // match.
  const isName = /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(vm.name) && vm.name === call.words[0];
  const hosts = isName ? `${vm.name} ${vm.vm_id}` : vm.vm_id;
  const lines = [`Host ${hosts}`, ...settings.map(([name, value]) => `  ${name} ${value}`)];
  call.output.one(Object.fromEntries(settings), () => lines);
}

async function create(call: Invocation) {
  const { words, options, output } = call;
  const [given, users] = [options.list('key'), userPublicKeys()];
  const ssh_keys = [...new Set([...given, ...users, ownPublicKey()])];
  const [type, region] = [options.text('type') ?? 't2.micro', options.text('region') ?? 'us-east-1'];
  const [image, script] = [options.text('image'), options.text('user-data')];
  const [databases, names] = [options.list('database'), options.list('ssh-key')];
  const { cloud } = call.session();
  const made = await cloud.createVm({
    name: words[0] ?? '',
    instance_type: type,
    region,
    ssh_keys,
    ...(names.length > 0 && { ssh_key_names: [...names] }),
    ...(image !== undefined && { image }),
    ...(script !== undefined && { user_data: readTextFile(script) }),
    ...(databases.length > 0 && { databases }),
  });
  const vm = options.has('start') ? await cloud.startVm(made.vm_id) : made;
  output.one(vm, () => [`${vm.name} is ${vm.state} (${vm.vm_id})`]);
}

async function logs(call: Invocation) {
  const { cloud, vm } = await theVm(call);
  const bytes = call.options.count('bytes', LOG_BYTES);
  if (bytes > MAX_LOG_BYTES) throw new UsageError(`the log has at most ${MAX_LOG_BYTES} bytes`);
  if (call.options.has('follow') && call.options.has('bytes'))
    throw new UsageError('--bytes cannot be used with --follow, which starts with the last 64 KiB');
  if (call.options.has('follow')) return showConsole(call.session(), vm, { isTyped: false });
  process.stdout.write(cleaned(await cloud.getVmLog(vm.vm_id, { bytes })));
}

export const VM_TUNNEL_COMMANDS: readonly Command[] = [
  {
    name: 'vm create',
    words: 'NAME',
    summary: 'create a machine with your SSH keys',
    details:
      'The machine gets the public keys in ~/.ssh and a key of this client on its first start. On another\ncomputer, vm ssh adds the key of that computer for two minutes.',
    options: {
      type: { value: 'TYPE', summary: 'instance type; default: t2.micro' },
      image: { value: 'IMAGE', summary: 'image; default: tiny' },
      region: { value: 'REGION', summary: 'region; default: us-east-1' },
      key: { value: 'LINE', summary: 'additional public key to install', many: true },
      'ssh-key': { value: 'NAME', summary: 'SSH key of the account to install, by its name', many: true },
      'user-data': { value: 'FILE', summary: 'script or cloud-init configuration for the first start' },
      database: {
        value: 'NAME',
        summary: 'put the URI of this database into a file on the machine',
        many: true,
      },
      start: { summary: 'start the machine' },
    },
    run: create,
  },
  {
    name: 'vm ssh',
    words: 'VM [COMMAND…]',
    summary: 'open a shell on a machine, or run a command on it',
    details:
      "Put arguments with a dash after --: cloudlet vm ssh web-1 -- ls -l\nIf the machine was created without this client's key, the key is added for two minutes, to log in.\nThis needs the scope compute:write.",
    options: {
      user: { value: 'NAME', short: 'l', summary: 'user to log in as; default: root' },
      identity: { value: 'FILE', short: 'i', summary: 'private key to log in with' },
      forward: { value: 'LIMIT', short: 'L', summary: 'forward a port (like ssh -L)', many: true },
    },
    run: async (call) => {
      const { vm } = await theVm(call);
      const { options, words } = call;
      const user = options.text('user');
      const identity = options.text('identity');
      const args = [
        ...(user === undefined ? [] : ['-l', user]),
        ...(identity === undefined ? [] : ['-i', identity]),
        ...options.list('forward').flatMap((rule) => ['-L', rule]),
      ];
      // The user on the command line wins: ssh uses the first value of a setting.
      const settings = (await sshSettings(call.session(), vm)).filter(([name]) => {
        return user === undefined || name !== 'User';
      });
      const code = await runSsh('ssh', settings, [...args, '--', vm.vm_id, ...words.slice(1)]);
      if (Number(code) === SSH_FAILED) call.output.note(REFUSED);
      return code;
    },
  },
  {
    name: 'vm cp',
    words: 'SOURCE… TARGET',
    summary: 'copy files to or from a machine: VM:PATH',
    options: { recursive: { short: 'r', summary: 'copy folders recursively' } },
    run: copy,
  },
  {
    name: 'vm forward',
    words: 'VM PORT…',
    summary: 'forward local ports to a machine: PORT or LOCAL:PORT',
    run: forward,
  },
  {
    name: 'vm proxy',
    words: 'VM [PORT]',
    summary: 'connect standard input and output to a port of a machine (default 22); for ssh ProxyCommand',
    options: { 'lend-key': { summary: "first add this client's SSH key to the machine for two minutes" } },
    run: async (call) => {
      const { session, words } = call;
      const [vm_id = '', port = '22'] = words;
      const vm = /^vm-/.test(vm_id) ? ({ vm_id } as Vm) : await findVm(session().cloud, vm_id);
      if (call.options.has('lend-key')) await lendOwnKey(session().cloud, vm.vm_id, call.output);
      const socket = await tunnelTo(call, vm, portPair(port).far)();
      await join(socket, { input: process.stdin, output: process.stdout });
      process.exit(0);
    },
  },
  {
    name: 'vm ssh-config',
    words: 'VM',
    summary: 'print the SSH configuration to reach a machine with ssh, scp, rsync and editors',
    details: 'Append it to ~/.ssh/config: cloudlet vm ssh-config web-1 >> ~/.ssh/config; ssh web-1',
    run: sshConfig,
  },
  {
    name: 'vm console',
    words: 'VM',
    summary: 'open the serial console of a machine; press Ctrl+] to leave',
    run: async (call) => {
      const { vm } = await theVm(call);
      return showConsole(call.session(), vm, { isTyped: true });
    },
  },
  {
    name: 'vm logs',
    words: 'VM',
    summary: 'print the latest output of the serial console',
    options: {
      follow: { short: 'f', summary: 'keep printing new output until the machine stops' },
      bytes: { value: 'COUNT', short: 'n', summary: 'number of bytes from the end; default: 65536' },
    },
    run: logs,
  },
];
