package recall_test

import (
	"fmt"
	"strings"
	"testing"
)

// Cases of languages that have a file of words and no rules for statements. The lines of "play" are banter,
// moods and beats of role play.
var languageCases = []gateCase{{
	language: "es",
	said: []string{
		"Mi perro se llama Tomillo, es un galgo.", "Mi hermana Lucía estudia medicina en Granada.", "Toco el violonchelo en un cuarteto.", "La llave de repuesto está debajo de la maceta azul.",
		"Mi abuela me enseñó a hacer rosquillas.", "Conduzco una furgoneta verde muy vieja.", "Estoy ahorrando para un viaje a Patagonia.", "No soporto el olor de la canela.", "El jefe se llama Ramiro y nunca escucha.",
		"Me rompí la muñeca izquierda a los nueve años.", "Nuestra boda es el 14 de septiembre.", "Mi novela favorita es La Regenta.", "Adoptamos dos gatitos, Sal y Pimienta.", "Le presté el taladro a Tomás, el de contabilidad.", "Trabajo de carpintero en Lugo.",
	},
	idle: []string{
		"hola", "buenas noches, que descanses", "jajaja qué gracioso", "gracias por escucharme", "cuéntame más", "¿en serio?", "no me digas", "vale, vale", "qué cansada estoy hoy", "me aburro", "te echo de menos",
		"¿cómo estás?", "¿qué haces?", "eres un tonto", "no sé qué decir", "venga, hasta mañana", "me muero de sueño", "hoy ha sido un día horrible", "anda ya", "qué calor hace", "ay, perdona", "te quiero mucho", "¿y entonces?",
		"*le da un codazo* ¿qué miras?", "*suspira y se deja caer en el sofá* por fin", "¡en guardia, bribón!", "tenemos que salir antes de que amanezca", "alguien viene por el pasillo, calla", "*se sonroja* no me mires así", "espera un segundo, que llaman a la puerta",
		"tengo un hambre que me muero", "¿jugamos a algo?", "no puedo dormir", "por fin es viernes", "estoy muy orgullosa de ti", "déjame en paz un rato", "¿me das un abrazo?", "*te guiña un ojo*", "menudo día llevo", "dime algo bonito",
	},
	questions: [][2]string{
		{"¿Cómo se llama mi perro?", "Tomillo"}, {"¿Qué estudia mi hermana?", "medicina"}, {"¿Qué instrumento toco? ¿El violonchelo?", "violonchelo"}, {"¿Dónde está la llave de repuesto?", "maceta"}, {"¿Quién me enseñó a hacer rosquillas?", "abuela"},
		{"¿De qué color es mi furgoneta?", "verde"}, {"¿Para qué viaje estoy ahorrando?", "Patagonia"}, {"¿Qué olor no soporto?", "canela"}, {"¿Cómo se llama el jefe?", "Ramiro"}, {"¿Qué muñeca me rompí?", "izquierda"},
		{"¿Cuándo es nuestra boda?", "septiembre"}, {"¿Cuál es mi novela favorita?", "Regenta"}, {"¿Cómo se llaman los gatitos?", "Pimienta"}, {"¿A quién le presté el taladro?", "Tomás"}, {"¿En qué trabajo?", "carpintero"},
	},
	noise: [3][]string{
		strings.Split("el vecino|una compañera|mi primo|el cartero|un viejo amigo|la profesora|un turista|la bibliotecaria|alguien|el jardinero", "|"),
		strings.Split("habló mucho de|se olvidó de|estaba contento con|se quejó de|pintó|vendió|arregló|estaba buscando|soñó con|se rio de", "|"),
		strings.Split("el puente viejo|una lámpara rota|el mercado|unas manzanas|un paraguas barato|el autobús nocturno|el museo|una silla de madera|el río|un jardín pequeño", "|"),
	},
	pattern: func(a, b, c string, n int) string {
		return []string{"Hoy %s %s %s.", "Creo que %s %s %s la semana pasada.", "Ya sabes, %s otra vez %s %s.", "Fue gracioso: %s %s %s."}[n%4]
	},
}, {
	language: "de",
	said: []string{
		"Mein Hund heißt Rübe, er ist ein Dackel.", "Meine Schwester Nele studiert Medizin in Jena.", "Ich spiele Cello in einem Quartett.", "Der Ersatzschlüssel liegt unter dem blauen Blumentopf.",
		"Meine Oma hat mir das Brotbacken beigebracht.", "Ich fahre einen uralten grünen Kombi.", "Ich spare auf eine Reise nach Patagonien.", "Den Geruch von Zimt kann ich nicht ausstehen.", "Mein Chef heißt Herr Bröcker und hört nie zu.",
		"Mit neun hab ich mir das linke Handgelenk gebrochen.", "Unsere Hochzeit ist am 14. September.", "Mein Lieblingsroman ist Effi Briest.", "Wir haben zwei Kätzchen, Salz und Pfeffer.", "Tom aus der Buchhaltung hat sich meine Bohrmaschine geliehen.", "Ich arbeite als Tischlerin in Husum.",
	},
	idle: []string{
		"hallo", "gute Nacht, schlaf gut", "hahaha, wie witzig", "danke fürs Zuhören", "erzähl mir mehr", "echt jetzt?", "nee, oder?", "na gut, von mir aus", "ich bin heute so müde", "mir ist langweilig", "du fehlst mir",
		"wie geht's dir?", "was machst du gerade?", "du bist ein Idiot", "ich weiß nicht, was ich sagen soll", "bis morgen dann", "ich schlaf gleich ein", "heute war ein furchtbarer Tag", "ach komm", "ist das heiß heute", "oh, entschuldige", "ich hab dich lieb", "und dann?",
		"*gibt dir einen Schubs* was guckst du so?", "*seufzt und lässt sich aufs Sofa fallen* endlich", "halt, wer da?", "wir müssen los, bevor es hell wird", "da kommt jemand, sei still", "*wird rot* schau mich nicht so an", "Moment, es klingelt an der Tür",
		"ich hab so einen Hunger", "spielen wir was?", "ich kann nicht schlafen", "endlich Freitag", "ich bin so stolz auf dich", "lass mich mal kurz in Ruhe", "krieg ich eine Umarmung?", "*zwinkert dir zu*", "das war vielleicht ein Tag", "sag mir was Schönes",
	},
	questions: [][2]string{
		{"Wie heißt mein Hund?", "Rübe"}, {"Was studiert meine Schwester?", "Medizin"}, {"Welches Instrument spiele ich? Cello?", "Cello"}, {"Wo liegt der Ersatzschlüssel?", "Blumentopf"}, {"Wer hat mir das Brotbacken beigebracht?", "Oma"},
		{"Welche Farbe hat mein Kombi?", "grünen"}, {"Auf welche Reise spare ich?", "Patagonien"}, {"Welchen Geruch kann ich nicht ausstehen?", "Zimt"}, {"Wie heißt mein Chef?", "Bröcker"}, {"Welches Handgelenk hab ich mir gebrochen?", "linke"},
		{"Wann ist unsere Hochzeit?", "September"}, {"Was ist mein Lieblingsroman?", "Effi"}, {"Wie heißen die Kätzchen?", "Pfeffer"}, {"Wem hab ich die Bohrmaschine geliehen?", "Tom"}, {"Als was arbeite ich?", "Tischlerin"},
	},
	noise: [3][]string{
		strings.Split("der Nachbar|eine Kollegin|mein Cousin|der Postbote|ein alter Freund|die Lehrerin|ein Tourist|die Bibliothekarin|jemand|der Gärtner", "|"),
		strings.Split("sprach lange über|vergaß|freute sich über|beschwerte sich über|malte|verkaufte|reparierte|suchte|träumte von|lachte über", "|"),
		strings.Split("die alte Brücke|eine kaputte Lampe|den Markt|ein paar Äpfel|einen billigen Schirm|den Nachtbus|das Museum|einen Holzstuhl|den Fluss|einen kleinen Garten", "|"),
	},
	pattern: func(a, b, c string, n int) string {
		return []string{"Heute: %s %s %s.", "Ich glaube, %s %s letzte Woche %s.", "Weißt du, %s %s wieder %s.", "Es war lustig, %s %s %s."}[n%4]
	},
}, {
	language: "ja",
	said: []string{
		"犬の名前はワサビ、柴犬だよ。", "妹のさくらは長崎で医学を勉強してる。", "弦楽四重奏でチェロを弾いてる。", "合鍵は青い植木鉢の下に隠してある。", "祖母に味噌づくりを教わった。", "古い緑の軽トラに乗ってる。", "パタゴニア旅行のために貯金してる。", "シナモンの匂いが苦手。", "店長は堀江さんっていって、人の話を聞かない。",
		"九歳のとき左手首を骨折した。", "結婚式は九月十四日。", "一番好きな小説は『こころ』。", "子猫を二匹引き取った、シオとコショウ。", "経理の富田さんにドリルを貸した。", "盛岡で大工をしてる。",
	},
	idle: []string{
		"こんばんは", "おやすみ、ゆっくり寝てね", "あはは、おかしい", "聞いてくれてありがとう", "もっと聞かせて", "まじで？", "うそでしょ", "まあいいか", "今日はほんとに疲れた", "ひまだなあ", "さみしかった",
		"元気？", "いまなにしてるの？", "ばか", "なんて言えばいいかわからない", "じゃあまた明日ね", "眠くて死にそう", "今日は最悪だった", "はいはい", "暑すぎる", "あ、ごめんね", "だいすきだよ", "それで？",
		"*ひじでつつく* なに見てるの", "*ため息をついてソファに倒れこむ* やっと終わった", "そこの者、止まれ！", "夜が明ける前に出発しないと", "誰か来る、静かに", "*顔を赤らめる* そんなに見ないで", "ちょっと待って、誰か来たみたい",
		"お腹すいて死にそう", "なんかして遊ぼうよ", "眠れないの", "やっと金曜日だ", "えらいね", "ちょっと放っておいて", "ぎゅってして", "*ウインクする*", "さんざんな一日だったよ", "なにか優しいこと言って",
	},
	questions: [][2]string{
		{"うちの犬の名前は？", "ワサビ"}, {"妹は何を勉強してる？", "医学"}, {"私が弾く楽器は？チェロ？", "チェロ"}, {"合鍵はどこ？", "植木鉢"}, {"味噌づくりは誰に教わった？", "祖母"},
		{"軽トラの色は？", "緑"}, {"どこの旅行のために貯金してる？", "パタゴニア"}, {"苦手な匂いは？", "シナモン"}, {"店長の名前は？", "堀江"}, {"骨折したのはどっちの手首？", "左手首"},
		{"結婚式はいつ？", "九月"}, {"一番好きな小説は？", "こころ"}, {"子猫の名前は？", "コショウ"}, {"ドリルは誰に貸した？", "富田"}, {"大工をしてるのはどこ？", "盛岡"},
	},
	noise: [3][]string{
		strings.Split("隣の人|同僚|いとこ|配達員|古い友達|先生|観光客|司書さん|知らない人|庭師", "|"),
		strings.Split("の話ばかりしてた|のことを忘れてた|に喜んでた|に文句を言ってた|を描いた|を売った|を直した|を探してた|の夢を見た|を笑ってた", "|"),
		strings.Split("古い橋|壊れた電灯|市場|りんご|安い傘|夜行バス|博物館|木の椅子|川|小さな庭", "|"),
	},
	pattern: func(a, b, c string, n int) string {
		return []string{"今日、%[1]sが%[3]s%[2]s。", "たしか先週%[1]sは%[3]s%[2]s。", "ねえ、%[1]sがまた%[3]s%[2]s。", "おかしかったよ、%[1]sが%[3]s%[2]s。"}[n%4]
	},
}}

// In languages that have only words, at most 8% of the idle messages recall anything, and at least 90% of
// the questions find their answer.
func TestRecallInLanguagesOfWords(t *testing.T) {
	t.Parallel()
	for _, s := range languageCases {
		for _, noise := range []int{0, 200, 2000} {
			t.Run(fmt.Sprint(s.language, noise), func(t *testing.T) {
				x := indexOf(t, s.units(noise)...)
				blocks, found := 0, 0
				for _, line := range s.idle {
					if hits := recallText(t, x, line); len(hits) > 0 {
						blocks++
						t.Logf("%q recalls %q", line, hits[0].Text)
					}
				}
				for _, p := range s.questions {
					if hits := recallText(t, x, p[0]); position(hits, p[1]) >= 0 {
						found++
					} else {
						t.Logf("%q finds %q", p[0], hitTexts(hits))
					}
				}
				t.Logf("%d of %d idle messages recall something; %d of %d probes", blocks, len(s.idle), found, len(s.questions))
				if blocks*100 > 8*len(s.idle) || found*10 < 9*len(s.questions) {
					t.Error("recall is outside its limits")
				}
			})
		}
	}
}

// Accents do not matter, in what was said and in what is asked (cases/reports.md, H21).
func TestAccentsDoNotMatter(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sessionUnits(1, "2023-05-02", "Ann: My aunt Zoë Müller lives in Tromsø.", "Ann: Herr Goehring repariert Straßenbahnen.", "Ann: Łukasz sold his boat.", "Ann: أحمد يعمل في المستشفى", "Ann: がまを飼っている。")...)
	for text, want := range map[string]string{
		"Where does Zoe Muller live?": "Tromsø", "Where does aunt Zoë live?": "Tromsø", "Who lives in Tromso?": "Zoë", "Wo wohnt Frau Mueller?": "Tromsø", "Was repariert Göhring?": "Straßenbahnen",
		"Who sold the boat, Lukasz?": "Łukasz", "احمد": "أحمد", "かま": "",
	} {
		hits := recallText(t, x, text)
		if want == "" && len(hits) > 0 || want != "" && position(hits, want) < 0 {
			t.Errorf("%q finds %q, want %q", text, hitTexts(hits), want)
		}
	}
}

// A question about a day finds what was said of it before, and a question for nothing but a day only that.
func TestDaysThatAreNamed(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sessionUnits(1, "2023-05-02", "Ann: The plumber comes on the 18th of May.", "Ann: 5月18号约了牙医。", "Ann: What happened next was funny.")...)
	for text, want := range map[string]string{"Is anything coming up next week?": "plumber", "下周有什么安排吗？": "牙医", "What happened next week?": "plumber"} {
		if hits := recallText(t, x, text); position(hits, want) < 0 || position(hits, "funny") >= 0 {
			t.Errorf("%q finds %q, want %q", text, hitTexts(hits), want)
		}
	}
}
