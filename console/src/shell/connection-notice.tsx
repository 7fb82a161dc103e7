/** One line while the cloud does not answer, on every page. */
import { useSyncExternalStore } from 'react';
import { Warning } from '../parts/warning.tsx';
import { live } from '../queries.ts';
import { text } from '../texts/text.ts';

export function ConnectionNotice() {
  const state = useSyncExternalStore(live.subscribe, live.get);
  return (
    <div role="status" className="connection-notice">
      {state === 'gone' && <Warning title={text.shell.gone}>{text.shell.goneLead}</Warning>}
    </div>
  );
}
