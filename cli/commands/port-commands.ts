/** Published ports of machines. */
import type { PublishedPort } from '../../sdk/index.ts';
import type { Command } from '../command.ts';
import { ClientError, EXIT, UsageError } from '../failures.ts';
import { about } from '../resources.ts';
import { findVm } from './resource-commands.ts';

const isNumber = (word: string | undefined): word is string => /^\d{1,5}$/.test(word ?? '');

/** `web-1` and `8081` as typed for `vm publish`, or its id. */
function isCalled({ port_id, public_port, hostname }: PublishedPort, word: string): boolean {
  return word === port_id || word === hostname || word === String(public_port);
}

export const PORT_COMMANDS: readonly Command[] = [
  {
    name: 'vm ports',
    words: 'VM',
    summary: 'list the published ports of a machine',
    run: about(findVm, async ({ vm_id }, { cloud, output }) => {
      output.table(await cloud.listVmPorts(vm_id), ['ADDRESS', 'PORT', 'OPEN', 'ID'], (port) => {
        return [port.address, port.port, port.open ? 'yes' : `no: ${port.reason}`, port.port_id];
      });
    }),
  },
  {
    name: 'vm publish',
    words: 'VM PORT',
    summary: 'make a port of a machine reachable by everyone who can reach the cloud',
    options: {
      'public-port': { value: 'PORT', summary: 'public port of the cloud; default: a free one' },
      hostname: { value: 'NAME', summary: 'publish a web server under a host name instead of a port' },
    },
    run: about(findVm, async ({ vm_id }, { cloud, output, options, words: [, port] }) => {
      if (!isNumber(port)) throw new UsageError('PORT must be a TCP port of the machine');
      const hostname = options.text('hostname');
      const made = await cloud.publishVmPort(vm_id, {
        port: Number(port),
        ...(options.has('public-port') ? { public_port: options.count('public-port', 0, 1) } : {}),
        ...(hostname === undefined ? {} : { hostname }),
      });
      output.one(made, () => [`${made.address} forwards to port ${made.port}`]);
    }),
  },
  {
    name: 'vm unpublish',
    words: 'VM PUBLIC_PORT|NAME',
    summary: 'stop publishing a port of a machine',
    run: about(findVm, async ({ vm_id, name }, { cloud, output, words: [, word = ''] }) => {
      const port = (await cloud.listVmPorts(vm_id)).find((each) => isCalled(each, word));
      if (port === undefined) throw new ClientError(`${name} does not publish ${word}`, EXIT.notFound);
      const deleted = await cloud.unpublishVmPort(vm_id, port.port_id);
      output.one(deleted, () => [`${port.address} is no longer published`]);
    }),
  },
];
