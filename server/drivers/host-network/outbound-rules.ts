/** The nftables ruleset of guests' outbound connections. */

export interface OutboundRules {
  /** false: no outbound connections, regardless of the other settings. */
  readonly letsOut: boolean;
  /** First user id of guests' processes. */
  readonly uidBase: number;
  readonly uidCount: number;
  /** IPv4 addresses of the host's name servers, which are queried on behalf of guests. */
  readonly resolvers: readonly string[];
  /** Private networks are not closed. */
  readonly allowPrivate: boolean;
  /** The cloud that owns the rules; null: they are never removed. */
  readonly comment: string | null;
}

/** This host's own and special ranges; the kernel's table of local addresses adds the rest. */
export const NEVER = ['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '240.0.0.0/4'];
export const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'];

/**
 * Replaces the table of that name atomically: there is no moment without rules. Packets of guests' processes
 * are filtered twice, before and after the host's own redirections, so that a port that the host redirects is
 * as closed as the host itself. Only replies on connections opened towards a guest pass unfiltered. Without
 * outbound access the engine's own network sends nothing; the rules then contain a compromised process.
 */
export function outboundRules(rules: OutboundRules): string {
  const { uidBase, uidCount } = rules;
  const table = `inet ${outboundTable(uidBase)}`;
  const comment = rules.comment === null ? '' : ` comment "${rules.comment}"`;
  const hook = (name: string, priority: number) => [
    `  chain ${name} {`,
    `    type filter hook output priority ${priority}; policy accept;`,
    `    meta skuid ${uidBase}-${uidBase + uidCount - 1} jump guest${comment}`,
    '  }',
  ];
  return [
    ...[`table ${table}`, `delete table ${table}`, `table ${table} {`],
    '  chain guest {',
    '    ct state established ct direction reply accept',
    ...(rules.letsOut ? exceptThose(rules) : ['    drop']),
    '  }',
    ...hook('before_redirection', -150),
    ...hook('after_redirection', 10),
    '}',
    '',
  ].join('\n');
}

/** Blocks this host and private addresses; the rest stays reachable. */
function exceptThose({ resolvers, allowPrivate }: OutboundRules): string[] {
  const closed = allowPrivate ? NEVER : [...NEVER, ...PRIVATE];
  const names = `ip daddr { ${resolvers.join(', ')} } meta l4proto { tcp, udp } th dport 53 accept`;
  return [
    ...(resolvers.length === 0 ? [] : [`    ${names}`]),
    // Guests have no IPv6.
    '    meta nfproto ipv6 drop',
    '    fib daddr type { local, broadcast, anycast, multicast } drop',
    `    ip daddr { ${closed.join(', ')} } drop`,
  ];
}

/** Clouds on one host use different ranges of user ids. */
function outboundTable(uidBase: number): string {
  return `cloudlet_${uidBase}`;
}
