import { LifebuoyIcon } from '@heroicons/react/24/outline';
import { cloud } from '../../cloud.ts';
import type { PaletteSource } from '../../palette/sources.ts';
import { showDone, showRefusal } from '../../parts/notices.tsx';
import { queryClient } from '../../queries.ts';
import { text } from '../../texts/text.ts';

export const recoveryPalette: PaletteSource = {
  isForAdmins: true,
  actions: [{ id: 'take-point', label: text.recovery.create, icon: LifebuoyIcon, open: take }],
};

/** Not waited for: the page of the points shows how far it is. */
function take(): Promise<unknown> {
  return cloud
    .createRecoveryPoint({ wait: 0 })
    .then(() => showDone(text.recovery.taking))
    .catch(showRefusal)
    .finally(() => queryClient.invalidateQueries({ queryKey: ['recovery'] }));
}
