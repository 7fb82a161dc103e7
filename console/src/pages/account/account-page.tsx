import { Page } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';

export function AccountPage() {
  return <Page title={text.account.title}>{null}</Page>;
}
