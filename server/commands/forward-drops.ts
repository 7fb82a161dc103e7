/** Which rules of others on this host drop what machines on the bridge send out. */

interface Chain {
  readonly table: string;
  readonly family: string;
  readonly name: string;
  readonly hook?: string;
  readonly policy?: string;
}

interface Rule {
  readonly table: string;
  readonly expr: unknown;
}

/**
 * The fix for the first chain, not of Cloudlet, that drops what is forwarded; null: none does, or a rule in
 * its table accepts the bridge. `ruleset` is what `nft -j list ruleset` says.
 */
export function forwardDrop(ruleset: string, bridge: string): { chain: string; fix: string } | null {
  const { nftables } = JSON.parse(ruleset) as { nftables: readonly { chain?: Chain; rule?: Rule }[] };
  const chains = nftables.flatMap(({ chain }) => (chain === undefined ? [] : [chain]));
  const dropping = chains.find(
    ({ table, hook, policy }) => hook === 'forward' && policy === 'drop' && !table.startsWith('cloudlet'),
  );
  if (dropping === undefined) return null;
  const { family, table, name } = dropping;
  const accepts = ({ table: of, expr }: Rule) =>
    of === table && JSON.stringify(expr).includes(`"${bridge}"`) && JSON.stringify(expr).includes('"accept"');
  if (nftables.some(({ rule }) => rule !== undefined && accepts(rule))) return null;
  const beside = (other: string) => chains.some((chain) => chain.table === table && chain.name === other);
  // Docker leaves this chain to others, and makes its own anew.
  const place = beside('DOCKER-USER') ? 'DOCKER-USER' : name;
  const allow = (side: string) => `nft insert rule ${family} ${table} ${place} ${side} ${bridge} accept`;
  const fix = beside('ufw-user-forward')
    ? `ufw route allow in on ${bridge} && ufw route allow out on ${bridge}`
    : `${allow('iifname')} && ${allow('oifname')}`;
  return { chain: `${family} ${table} ${name}`, fix };
}
