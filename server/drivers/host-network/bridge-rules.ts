/** nftables rules that isolate guests on a bridge from each other and from this host. */
import { NEVER, PRIVATE } from './outbound-rules.ts';

/** A guest on the bridge. */
export interface BridgeGuest {
  /** The name of its end on this host. */
  readonly device: string;
  readonly mac: string;
  /** IPv4 text. */
  readonly address: string;
  /** TCP ports reachable from other hosts. */
  readonly ports: readonly number[];
  readonly outbound: boolean;
}

export interface BridgeRules {
  readonly bridge: string;
  readonly guests: readonly BridgeGuest[];
  readonly resolvers: readonly string[];
  readonly allowPrivate: boolean;
  /** The cloud that owns the rules; null: they are never removed. */
  readonly comment: string | null;
}

/**
 * Two tables; each atomically replaces the previous one. A guest sends only IPv4 and ARP, only from its own
 * address, and nothing to other guests; to this host it only replies. Other hosts reach its ports if the
 * operator routes them here; it reaches them if allowed.
 */
export function bridgeRules(rules: BridgeRules): string {
  return [...frameRules(rules), ...packetRules(rules), ''].join('\n');
}

function frameRules({ bridge, guests }: BridgeRules): string[] {
  const each = guests.map(({ device }) => `"${device}" : jump from_${device}`);
  const all = guests.map(({ device }) => `"${device}"`);
  // Matched by guest devices: matching the bridge (ibrname) needs a module that some kernels lack.
  const when = (rule: string) => (guests.length === 0 ? [] : [rule]);
  return [
    ...replaced('bridge', bridge),
    ...guests.flatMap(({ device, mac, address }) => [
      `  chain from_${device} {`,
      `    ether saddr != ${mac} drop`,
      `    arp saddr ether ${mac} arp saddr ip ${address} accept`,
      '    udp sport 67 drop',
      `    ether type ip ip saddr ${address} accept`,
      '    drop',
      '  }',
    ]),
    ...hook('prerouting', 'filter', -300),
    ...when(`    iifname vmap { ${each.join(', ')} }`),
    '  }',
    ...hook('forward', 'filter', 0),
    ...when(`    iifname { ${all.join(', ')} } drop`),
    '  }',
    '}',
  ];
}

function packetRules({ bridge, guests, resolvers, allowPrivate, comment }: BridgeRules): string[] {
  const open = guests.flatMap(({ address, ports }) => ports.map((port) => `${address} . ${port}`));
  const out = guests.filter(({ outbound }) => outbound).map(({ address }) => address);
  const closed = allowPrivate ? NEVER : [...NEVER, ...PRIVATE];
  return [
    ...replaced('inet', bridge),
    ...set('open', 'ipv4_addr . inet_service', open),
    ...set('out', 'ipv4_addr', out),
    ...hook('prerouting', 'filter', -150),
    // Before the host's own redirections: a forwarded port is closed like the original.
    `    iifname "${bridge}" ct direction original fib daddr type { local, broadcast, multicast } drop`,
    '  }',
    ...hook('input', 'filter', 10),
    `    iifname "${bridge}" ct state established ct direction reply accept`,
    `    iifname "${bridge}" drop`,
    '  }',
    '  chain from_guests {',
    '    ct state established ct direction reply accept',
    '    ip saddr != @out drop',
    ...(resolvers.length === 0
      ? []
      : [`    ip daddr { ${resolvers.join(', ')} } meta l4proto { tcp, udp } th dport 53 accept`]),
    `    ip daddr { ${closed.join(', ')} } drop`,
    '    accept',
    '  }',
    '  chain to_guests {',
    '    ct state established ct direction reply accept',
    '    ct state related accept',
    '    ip daddr . tcp dport @open accept',
    '    drop',
    '  }',
    ...hook('forward', 'filter', 10),
    `    iifname "${bridge}" jump from_guests${comment === null ? '' : ` comment "${comment}"`}`,
    `    oifname "${bridge}" jump to_guests`,
    '  }',
    ...hook('postrouting', 'nat', 100),
    `    ip saddr @out iifname "${bridge}" masquerade`,
    '  }',
    '}',
  ];
}

function replaced(family: string, bridge: string): string[] {
  const table = `table ${family} ${bridge}`;
  return [table, `delete ${table}`, `${table} {`];
}

function set(name: string, type: string, elements: readonly string[]): string[] {
  const filled = elements.length === 0 ? [] : [`    elements = { ${elements.join(', ')} }`];
  return [`  set ${name} {`, `    type ${type}`, ...filled, '  }'];
}

function hook(name: string, type: string, priority: number): string[] {
  return [`  chain ${name} {`, `    type ${type} hook ${name} priority ${priority}; policy accept;`];
}
