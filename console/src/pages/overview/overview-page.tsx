import { Page } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';

export function OverviewPage() {
  return <Page title={text.overview.title}>{null}</Page>;
}
