/** Ports of the host node for users at this front node of a cluster, according to the settings. */
import { isIP } from 'node:net';
import type { Config } from '../../config/config.ts';
import { publishedAt } from '../../config/published-address.ts';
import type { Membership } from '../../platform/membership.ts';
import { ABOUT_ENGINES } from '../engines/all-engines.ts';
import type { OfferedPorts } from '../offered-ports.ts';
import { FrontPorts, type FrontPortsDeps } from './front-ports.ts';

interface OwnFrontPortsDeps extends Pick<FrontPortsDeps, 'alarms' | 'clock'> {
  readonly config: Pick<Config, 'databaseHost' | 'publishedPorts' | 'host' | 'publishedHost'>;
  readonly membership: Pick<Membership, 'nodes' | 'onNews'>;
  readonly ports: Pick<OfferedPorts, 'saw'> | undefined;
}

/** Listens once start() is called. `dial` undefined: this node has the ports itself. */
export function ownFrontPorts(
  dial: FrontPortsDeps['dial'] | undefined,
  { config, membership, ports: offered, ...deps }: OwnFrontPortsDeps,
): { readonly start?: () => void; readonly close?: () => Promise<void> } {
  if (dial === undefined) return {};
  const { databaseHost, publishedPorts } = config;
  const ofDatabases = databaseHost === '' ? '127.0.0.1' : isIP(databaseHost) === 0 ? '*' : databaseHost;
  const ofMachines = publishedPorts === 'off' ? [] : [publishedAt(config).listen];
  let ports: FrontPorts | undefined;
  let stop = () => {};
  const start = () => {
    const opened = new FrontPorts({
      ...deps,
      dial,
      told: () => membership.nodes().find(({ isHost }) => isHost)?.ports ?? null,
      matched: (version) => offered?.saw(version),
      addressesOf: (protocol) => (protocol === 'tcp' ? ofMachines : [ofDatabases]),
      refusalOf: (protocol, text) => {
        return ABOUT_ENGINES.find(({ name }) => name === protocol)?.refusal?.(text) ?? null;
      },
    });
    ports = opened;
    stop = membership.onNews(() => opened.heard());
  };
  const close = async () => {
    stop();
    await ports?.close();
  };
  return { start, close };
}
