/** Why a machine was not started when it was asked for last, and how to go on. */
import { useMutationState } from '@tanstack/react-query';
import { CloudError, type Vm } from '../../../../sdk/index.ts';
import { MoreCredits } from '../../parts/credit-warning.tsx';
import { AnchorLink } from '../../parts/links.tsx';
import { Refused } from '../../parts/refused.tsx';
import { useIsAdmin } from '../../parts/use-is-admin.ts';
import { text } from '../../texts/text.ts';
import { isOff, startKey } from './power.ts';

/** Refusals that a smaller one might not get. */
const SIZE_MATTERS = ['insufficient_credits', 'insufficient_capacity', 'quota_exceeded'];

export function RefusedStart({ vm }: { vm: Vm }) {
  const errors = useMutationState({
    filters: { mutationKey: startKey(vm.vm_id), exact: true },
    select: ({ state }) => state.error,
  });
  if (!isOff(vm)) return null;
  const error = errors.at(-1);
  return (
    <Refused error={error}>
      <WayOut code={error instanceof CloudError ? error.code : undefined} />
    </Refused>
  );
}

function WayOut({ code }: { code: string | undefined }) {
  const isAdmin = useIsAdmin();
  if (code === 'insufficient_credits' && isAdmin) return <MoreCredits />;
  if (code === undefined || !SIZE_MATTERS.includes(code)) return null;
  return <AnchorLink to="/machines/new">{text.machines.createSmaller}</AnchorLink>;
}
