package index

import "strings"

// irregular maps irregular forms to the word, and small numbers to digits.
var irregular = func() map[string]string {
	m := map[string]string{}
	for line := range strings.FieldsSeq(irregularForms) {
		word, forms, _ := strings.Cut(line, ":")
		for form := range strings.SplitSeq(forms, ",") {
			m[form] = word
		}
	}
	return m
}()

// Forms that are common words of their own (saw, felt, ground, left, rose, found, bound, wound,
// spoke, bore, lit) are listed only if the verb is more common.
const irregularForms = `
arise:arose,arisen awake:awoke,awoken bear:bore,borne beat:beaten become:became begin:began,begun bend:bent bite:bit,bitten
bleed:bled blow:blew,blown break:broke,broken breed:bred bring:brought build:built burn:burnt buy:bought catch:caught
choose:chose,chosen cling:clung come:came creep:crept deal:dealt dig:dug draw:drew,drawn dream:dreamt drink:drank,drunk
drive:drove,driven eat:ate,eaten fall:fell,fallen feed:fed feel:felt fight:fought find:found flee:fled fly:flew,flown
forbid:forbade,forbidden forget:forgot,forgotten forgive:forgave,forgiven freeze:froze,frozen get:got,gotten give:gave,given
go:went,gone grow:grew,grown hang:hung hear:heard hide:hid,hidden hold:held keep:kept kneel:knelt know:knew,known lay:laid
lead:led lean:leant leap:leapt learn:learnt leave:left lend:lent lose:lost make:made mean:meant meet:met overcome:overcame
pay:paid ride:rode,ridden ring:rang,rung rise:rose,risen run:ran say:said see:saw,seen seek:sought sell:sold send:sent
sew:sewn shake:shook,shaken shine:shone shoot:shot show:shown shrink:shrank,shrunk sing:sang,sung sink:sank,sunk sit:sat
sleep:slept slide:slid speak:spoke,spoken spend:spent spin:spun stand:stood steal:stole,stolen stick:stuck sting:stung
strike:struck swear:swore,sworn sweep:swept swim:swam,swum swing:swung take:took,taken teach:taught tear:tore,torn tell:told
think:thought throw:threw,thrown understand:understood wake:woke,woken wear:wore,worn weep:wept win:won write:wrote,written
child:children man:men woman:women person:people foot:feet tooth:teeth goose:geese mouse:mice wife:wives
knife:knives wolf:wolves half:halves shelf:shelves thief:thieves
good:better,best bad:worse,worst
2:two 3:three 4:four 5:five 6:six 7:seven 8:eight 9:nine 10:ten 11:eleven 12:twelve
mom:mum,mommy,mummy,mama dad:daddy,papa kid:kiddo,kiddos tv:television photo:photograph,photographs,pic,pics
favorite:favourite color:colour colors:colours neighbor:neighbour neighbors:neighbours gray:grey
`
