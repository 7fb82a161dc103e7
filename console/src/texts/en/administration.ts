export const administration = {
  title: 'Administration',
  soon: 'These pages are on their way. The API has everything already.',
};
