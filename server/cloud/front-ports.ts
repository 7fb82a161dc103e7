/** Ports of the host node for users at a front node of a cluster. */
import { isIP } from 'node:net';
import { publishedAt } from '../config/published-address.ts';
import { ABOUT_ENGINES } from '../drivers/engines/all-engines.ts';
import { FrontPorts } from '../drivers/node-proxy/front-ports.ts';
import type { Forward } from '../http/forwarding/forward.ts';
import type { BuildOptions } from './cloud.ts';
import type { Foundations } from './foundations.ts';
import type { Part } from './parts.ts';

type FrontPortsOptions = Pick<Foundations, 'membership' | 'alarms'> & Pick<BuildOptions, 'config' | 'clock'>;

/** The host's ports for users at this front node. `forward` undefined: this one has them. */
export function frontPorts(
  forward: Forward | undefined,
  { config, clock, membership, alarms }: FrontPortsOptions,
): Part {
  if (forward === undefined) return {};
  const { databaseHost, publishedPorts } = config;
  const ofDatabases = databaseHost === '' ? '127.0.0.1' : isIP(databaseHost) === 0 ? '*' : databaseHost;
  const ofMachines = publishedPorts === 'off' ? [] : [publishedAt(config).listen];
  let ports: FrontPorts | undefined;
  const begin = () => {
    ports = new FrontPorts({
      told: () => membership.nodes().find(({ isHost }) => isHost)?.ports ?? null,
      dial: (port, address) => forward.connect(port, address),
      addressesOf: (protocol) => (protocol === 'tcp' ? ofMachines : [ofDatabases]),
      refusalOf: (protocol, text) => {
        return ABOUT_ENGINES.find(({ name }) => name === protocol)?.refusal?.(text) ?? null;
      },
      alarms,
      clock,
    });
  };
  return { start: begin, close: async () => ports?.close() };
}
